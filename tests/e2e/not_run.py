"""What the pages show and tests/e2e/test_readme_commands.py does not run, and why."""

import re

# (page, command, reason): regular expressions; the first that fits counts. A reason that names a test or a script
# names one that is there, and an entry that fits nothing fails the test.
NOT_RUN = [
    (r"", r"/path/to/directory|BAAI/bge", "a model of one's own"),
    (r"", r"^(\w+=\S+ )?(deploy/serve\.sh|deploy/install_deps\.sh|tests/run\.sh)\b", "installs packages and builds"),
    (r"", r"\.deps/clients/bin/python (-m pytest|tests/)|^tests/support/repeat\.sh", "tests of their own"),
    (r"", r"^(docker|helm|kubectl) ", "needs a daemon or a cluster: tests/deploy/test_image.py, tests/cluster"),
    (r"(deploy/)?README\.md", r"^(deploy/release\.sh|pip install (dist/)?longview_server)",
     "minutes of packing: tests/deploy/test_release.py and tests/deploy/test_first_answer.py"),
    (r"deploy/README\.md", r"^(cmake --preset|cpack |tar )", "minutes of packing: tests/deploy/test_prebuilt.py"),
    (r"deploy/bulk/", r"^pip |longview_bulk", "packages and rows of one's own: tests/deploy/bulk/test_killed.py"),
    (r"deploy/", r"^deploy/load/run\.sh", "minutes of load: tests/deploy/test_load_files.py"),
    (r"deploy/load/", r"\.json localhost:9000", "200 long requests each, and more: tests/deploy/test_load_files.py"),
    (r"deploy/load/", r"--call longview\.v1", "three seconds of load, with a switch that is explained behind it"),
    (r"README\.md|tests/bench/", r"tests/bench/\w+\.(py|sh)|^build/bin/\w+_(bench|overhead)\b|generator_pipe",
     "minutes of measuring, beside peers that are not installed"),
    (r"models/README\.md", r"^python3 models/convert/", "checkpoints that are not here: tests/models has these"),
    (r"models/train/", r"", "hours of training, with packages and data that are not here"),
    (r"client/cpp/", r"^cmake --install ", "tests/client/test_cpp_package.py"),
    (r"client/python/", r"^pip ", "tests/client/conftest.py"),
    (r"proto/", r"", "tests/server/grpc/test_stubs.py"),
    (r"CONTRIBUTING\.md", r"some_test|/path/to/more", "names that stand for others"),
    (r"kernels/cuda/", r"kernels_cuda_span_test", "a test of tests/kernels, minutes long"),
    (r"tests/fuzz/", r"--preset fuzz", "builds everything with clang"),
]
# Languages of blocks that are run elsewhere, or are no programs.
ELSEWHERE = {
    "js": "tests/languages/test_page.py", "go": "tests/languages/test_page.py",
    "rust": "tests/languages/test_page.py", "java": "tests/languages/test_page.py",
    "cpp": "tests/client/test_cpp_package.py", "cmake": "tests/client/test_cpp_package.py",
    "mermaid": "a picture", "text": "a picture, or what a program writes",
}
# Pages whose Python is run elsewhere: it names libraries and models that the bundled server lacks.
OWN_PYTHON = {"deploy/COMING_FROM.md": "tests/e2e/test_coming_from_libraries.py"}


def entry(page, command):
    """The entry of NOT_RUN for a command of a page, or None."""
    return next((row for row in NOT_RUN if re.match(row[0], page) and re.search(row[1], command)), None)
