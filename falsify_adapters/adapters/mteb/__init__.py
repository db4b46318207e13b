"""MTEB: result folders and predictions of all its versions.

:mod:`~falsify_adapters.adapters.mteb.walk` finds files,
:mod:`~falsify_adapters.adapters.mteb.results` and
:mod:`~falsify_adapters.adapters.mteb.predictions` read them,
:mod:`~falsify_adapters.adapters.mteb.qrels`, :mod:`~falsify_adapters.adapters.mteb.tasks` and
:mod:`~falsify_adapters.adapters.mteb.benchmarks` find what they are scored against, and
:mod:`~falsify_adapters.adapters.mteb.load` joins the two. Nothing imports mteb before it is asked
something that only mteb knows.
"""

from falsify_adapters.adapters.mteb.load import MtebFolder, Selection, load_mteb

__all__ = ["MtebFolder", "Selection", "load_mteb"]
