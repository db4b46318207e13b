"""The four nulls: dumb systems, and benchmarks whose answers belong to other questions."""

from falsify_adapters.nulls.cross import CrossMatrix, own_scores
from falsify_adapters.nulls.draws import NullDraws
from falsify_adapters.nulls.permuted import permutation_variance, permuted_gold
from falsify_adapters.nulls.permuted_labels import permuted_labels
from falsify_adapters.nulls.pool import Pool
from falsify_adapters.nulls.popularity import frequent_sets, moved_popularity, popularity_gold
from falsify_adapters.nulls.random_documents import expected_random, random_documents
from falsify_adapters.nulls.uniform import uniform_gold

__all__ = [
    "CrossMatrix",
    "NullDraws",
    "Pool",
    "expected_random",
    "frequent_sets",
    "moved_popularity",
    "own_scores",
    "permutation_variance",
    "permuted_gold",
    "permuted_labels",
    "popularity_gold",
    "random_documents",
    "uniform_gold",
]
