"""Asks a Longview service about every row of Parquet or JSONL files and writes the answers as Parquet.

    python -m longview_bulk --input rows/ --output answers/ --servers localhost:9000 \\
        --task classify --model code-language
"""
