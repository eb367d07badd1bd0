"""BM25 (Lucene's form, k1 = 1.5, b = 0.75) as the library bm25s computes it, with three ways to
find words: as the library does it, with identifiers cut into words, and with endings cut off too."""
import re

import bm25s
import numpy
import Stemmer

import train_tokenizer

CAPITALS = re.compile(train_tokenizer.CAPITALS)
STEMMER = Stemmer.Stemmer("english")


def _identifiers(texts):
    return [CAPITALS.sub(" ", text).replace("_", " ") for text in texts]


def _words(texts):
    return bm25s.tokenize(texts, stopwords="en", return_ids=False, show_progress=False)


def _cut_words(texts):
    return _words(_identifiers(texts))


def _stemmed_words(texts):
    return bm25s.tokenize(_identifiers(texts), stopwords="en", stemmer=STEMMER, return_ids=False,
                          show_progress=False)


WAYS = {"BM25": _words, "BM25, identifiers cut": _cut_words, "BM25, identifiers cut, stemmed": _stemmed_words}


def scores(way, questions, pieces):
    """[questions, pieces]"""
    index = bm25s.BM25()
    index.index(WAYS[way](pieces), show_progress=False)
    return numpy.stack([index.get_scores(words) if words else numpy.zeros(len(pieces))
                        for words in WAYS[way](questions)])
