"""Multiple choice as retrieval: OLMES predictions and lm-evaluation-harness samples.

A question is a query, its choices are its whole corpus (documents ``choice-0``, ``choice-1``,
... in the order of the file), the right one is relevant, and the run ranks them by the score that
the model gave. P@1 is then the accuracy. Null C picks a choice at random, null A exchanges right
answers between questions with equally many choices, null D draws them from the answer key:
"always C" gains nothing there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from falsify_adapters.adapters.ranked import Ranked, evaluation_of
from falsify_adapters.adapters.records import (
    Records,
    Row,
    as_id,
    as_list,
    as_number,
    as_object,
    required,
)
from falsify_adapters.dependence import Dependence
from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.notes import Note, counted, plural, some

#: The measure that is the accuracy.
MEASURE = "P@1"

#: Scores that OLMES writes for each choice.
OLMES_SCORES = {
    "raw": ("sum_logits",),
    "per_token": ("logits_per_token",),
    "per_char": ("logits_per_char",),
    "per_byte": ("bits_per_byte", "logits_per_byte"),
    "uncond": ("sum_logits",),
}
#: Accuracies that the harness writes for each sample.
HARNESS_SCORES = {
    "raw": "acc",
    "norm": "acc_norm",
    "bytes": "acc_bytes",
    "mutual_info": "acc_mutual_info",
}
#: Lengths by which the harness divides.
HARNESS_LENGTHS = {"norm": len, "bytes": lambda text: len(text.encode())}
#: Most beginnings of the choices that are tried as what stands between question and choice.
LONGEST_DELIMITER = 8


@dataclass(frozen=True)
class Question:
    """One question.

    Parameters
    ----------
    query_id : str
        Its id.
    scores : sequence of float
        Of each choice; higher is better.
    right : frozenset of int
        The right choices.
    picked_right : bool
        Whether the file says that the model picked a right one.
    where : str
        Where it stands, for errors.
    """

    query_id: str
    scores: Sequence[float]
    right: frozenset[int]
    picked_right: bool
    where: str

    @property
    def order(self) -> list[int]:
        """The choices, best first; of equal ones the first, as argmax picks it."""
        return sorted(range(len(self.scores)), key=lambda i: (-self.scores[i], i))

    @property
    def tied(self) -> bool:
        """Whether a right choice has the same score as a wrong one."""
        wrong = {s for i, s in enumerate(self.scores) if i not in self.right}
        return any(self.scores[i] in wrong for i in self.right)


def recognises_olmes(records: Records) -> bool:
    """Say whether these are predictions that OLMES wrote."""
    return records.have("model_output", "label")


def recognises_harness(records: Records) -> bool:
    """Say whether these are samples that lm-evaluation-harness wrote."""
    return records.have("filtered_resps", "target")


def evaluate_olmes(records: Records, *, score: str = "raw", **joining: Any) -> Evaluation:
    """Return the evaluation of OLMES predictions (``task-...-predictions.jsonl``).

    Parameters
    ----------
    records : Records
        Rows with ``doc_id``, ``label``, ``model_output`` (one entry per choice) and ``metrics``.
    score : {"raw", "per_token", "per_char", "per_byte", "uncond"}
        What ranks the choices: the log-likelihood, its share per token, character or byte, or
        what the question adds to the choice's own log-likelihood.
    **joining
        Keywords of :meth:`Evaluation.create`, the corpus size aside.

    Raises
    ------
    InputError
        If a row is not as it should be, or the choices so ranked do not give the accuracy that
        the file states; the message names the first question where they differ.
    UsageError
        If there is no such score.

    Examples
    --------
    >>> outputs = [{"sum_logits": -3.0}, {"sum_logits": -1.0}]
    >>> row = {"doc_id": 7, "label": 1, "model_output": outputs,
    ...        "metrics": {"predicted_index_raw": 1}}
    >>> evaluate_olmes(Records([row], "predictions.jsonl")).run
      query_id    doc_id  score
    0        7  choice-1    2.0
    1        7  choice-0    1.0
    """
    _check_score(score, OLMES_SCORES)
    questions = [
        _olmes_question(row, score, records.where(number))
        for number, row in enumerate(records.rows)
    ]
    return _evaluation(questions, score, records, **joining)


def evaluate_harness(records: Records, *, score: str = "raw", **joining: Any) -> Evaluation:
    """Return the evaluation of lm-evaluation-harness samples (``samples_...jsonl``).

    Parameters
    ----------
    records : Records
        Rows with ``doc_id``, ``target``, ``filtered_resps`` (one pair of log-likelihood and
        greediness per choice) and ``acc`` or ``acc_norm``.
    score : {"raw", "norm", "bytes", "mutual_info"}
        What ranks the choices: the log-likelihood (``acc``); its share per character
        (``acc_norm``) or byte (``acc_bytes``), for which ``arguments`` must hold the choices'
        texts; or what the question adds to the choice's own log-likelihood
        (``acc_mutual_info``).
    **joining
        Keywords of :meth:`Evaluation.create`, the corpus size aside.

    Raises
    ------
    InputError, UsageError
        As :func:`evaluate_olmes` does.

    Examples
    --------
    >>> row = {"doc_id": 7, "target": "1", "acc": 1.0,
    ...        "filtered_resps": [["-3.1", "False"], ["-1.2", "True"]]}
    >>> evaluate_harness(Records([row], "samples.jsonl")).pool_sizes
    {'7': 2}
    """
    _check_score(score, HARNESS_SCORES)
    samples = [_sample(row, where) for row, where in _one_filter(records)]
    return _evaluation(_questions(samples, score), score, records, **joining)


def _check_score(score: str, known: Any) -> None:
    if score not in known:
        raise UsageError("unknown score of choices", found=score, hint=f"one of {', '.join(known)}")


def _evaluation(
    questions: list[Question], score: str, records: Records, **joining: Any
) -> Evaluation:
    given = [name for name in ("corpus_size", "corpus_ids") if joining.get(name) is not None]
    if given:
        raise UsageError(
            f"{records.label}: a question's choices are its corpus", hint="give no corpus size"
        )
    joining.pop("corpus_size", None)
    _check_accuracy(questions, score, records.label)
    sizes = {one.query_id: len(one.scores) for one in questions}
    notes = list(joining.pop("notes", ()))
    tied = [one.query_id for one in questions if one.tied]
    if tied:
        notes.append(
            Note(
                "W-TIES",
                f"in {len(tied)} of {counted(len(questions), 'question')} a right and a wrong"
                " choice have the"
                f" same score ({some(tied)}); the one listed first is ranked first, as the tool"
                " that wrote the file does",
            )
        )
    return evaluation_of(
        _ranked(questions),
        records,
        corpus_size=max(sizes.values()),
        pool_sizes=sizes,
        dependence=Dependence(
            strata={query: str(size) for query, size in sizes.items()},
            strata_from="number of choices",
        ),
        notes=notes,
        **joining,
    )


def _ranked(questions: list[Question]) -> Iterator[Ranked]:
    for one in questions:
        gold = {f"choice-{i}": 1 for i in sorted(one.right)}
        yield Ranked(one.query_id, [f"choice-{i}" for i in one.order], gold, one.where)


def _differing(questions: list[Question]) -> list[Question]:
    """Return the questions where the best choice is right and the file denies it, or vice versa."""
    return [one for one in questions if (one.order[0] in one.right) != one.picked_right]


def _check_accuracy(questions: list[Question], score: str, label: str) -> None:
    differ = _differing(questions)
    if not differ:
        return
    ours = sum(one.order[0] in one.right for one in questions) / len(questions)
    theirs = sum(one.picked_right for one in questions) / len(questions)
    first = differ[0]
    raise InputError(
        f"{label}: the choices ranked by score {score!r} do not give the file's own accuracy",
        found=f"{ours:.6f} recomputed, {theirs:.6f} in the file; {len(differ)} of"
        f" {counted(len(questions), 'question')} {plural(len(differ), 'differs', 'differ')},"
        f" the first at {first.where} (question {first.query_id}: choice"
        f" {first.order[0]} is best, right is {some(sorted(first.right))}, the file counts it"
        f" as {'right' if first.picked_right else 'wrong'})",
        hint="is another score meant, or was the file put together from two runs?",
    )


def _olmes_question(row: Row, score: str, where: str) -> Question:
    label = required(row, "label", where)
    outputs = as_list(required(row, "model_output", where), "model_output", where)
    scores = [_olmes_score(output, score, where) for output in outputs]
    right = _indices(label, len(scores), where)
    metrics = as_object(required(row, "metrics", where), where)
    accuracy, predicted = metrics.get(f"acc_{score}"), metrics.get(f"predicted_index_{score}")
    if accuracy is None and predicted is None:
        raise _no_accuracy(where, f"acc_{score} or predicted_index_{score}", metrics)
    if accuracy is None:
        picked = _indices(predicted, len(scores), where) <= right
    else:
        picked = _is_one(accuracy, where)
    return Question(_query_id(row, where), scores, right, picked, where)


def _olmes_score(output: Any, score: str, where: str) -> float:
    output = as_object(output, where)
    key = next((key for key in OLMES_SCORES[score] if output.get(key) is not None), None)
    if key is None:
        raise InputError(
            f"{where}: a choice has no {' or '.join(OLMES_SCORES[score])}",
            found=f"the keys {some(output, 8)}",
        )
    value = as_number(output[key], key, where)
    if score == "per_byte":
        # bits in some versions, where less is better, log-likelihoods in others: never both signs
        return -abs(value)
    if score == "uncond":
        own = as_number(required(output, "sum_logits_uncond", where), "sum_logits_uncond", where)
        return as_number(value - own, "the difference of log-likelihoods", where)
    return value


def _one_filter(records: Records) -> list[tuple[Row, str]]:
    """Return the rows of one filter: the harness repeats every sample for each."""
    names = dict.fromkeys(str(row.get("filter", "none")) for row in records.rows)
    wanted = "none" if "none" in names else next(iter(names))
    if wanted != "none" and len(names) > 1:
        raise InputError(
            f"{records.label} holds the samples of several filters, none of them unfiltered",
            found=some(names),
            hint="keep the rows of one filter",
        )
    rows = ((row, records.where(number)) for number, row in enumerate(records.rows))
    return [(row, where) for row, where in rows if str(row.get("filter", "none")) == wanted]


@dataclass(frozen=True)
class _Sample:
    """A sample of the harness: its row, and what the model said of each choice.

    Parameters
    ----------
    row : mapping
        The sample.
    where : str
        Where it stands, for errors.
    likelihoods, alone : sequence of float
        Log-likelihood of each choice after the question; and without it, if the file has that.
    texts : sequence of str
        What was appended to the question for each choice; empty if the file does not say.
    """

    row: Row
    where: str
    likelihoods: Sequence[float]
    alone: Sequence[float]
    texts: Sequence[str]


def _sample(row: Row, where: str) -> _Sample:
    responses = as_list(required(row, "filtered_resps", where), "filtered_resps", where)
    values = [_likelihood(response, where) for response in responses]
    texts = _texts(row)
    texts = texts if len(texts) == len(values) else []
    if HARNESS_SCORES["mutual_info"] not in row:
        return _Sample(row, where, values, (), texts)
    # then each choice was asked for twice, the second time without the question
    n = len(values) // 2
    if len(values) % 2 or texts[:n] != texts[n:]:
        raise InputError(
            f"{where} has {HARNESS_SCORES['mutual_info']}, but not each choice twice",
            found=counted(len(values), "response"),
        )
    return _Sample(row, where, values[:n], values[n:], texts[:n])


def _questions(samples: list[_Sample], score: str) -> list[Question]:
    """Rank the choices; what stands between question and choice is found out where it matters."""
    if score not in HARNESS_LENGTHS:
        return [_question(one, _scores(one, score, ""), score) for one in samples]
    tried = (
        [_question(one, _scores(one, score, delimiter), score) for one in samples]
        for delimiter in _delimiters(samples)
    )
    first = next(tried)
    if not _differing(first):
        return first
    return next((other for other in tried if not _differing(other)), first)


def _question(sample: _Sample, scores: Sequence[float], score: str) -> Question:
    row, where = sample.row, sample.where
    right = _target(row, sample.texts, len(scores), where)
    accuracy = row.get(HARNESS_SCORES[score])
    if accuracy is None:
        raise _no_accuracy(where, HARNESS_SCORES[score], row)
    return Question(_query_id(row, where), scores, right, _is_one(accuracy, where), where)


def _scores(sample: _Sample, score: str, delimiter: str) -> list[float]:
    if score == "raw":
        return list(sample.likelihoods)
    if score == "mutual_info":
        if not sample.alone:
            raise _no_accuracy(sample.where, HARNESS_SCORES[score], sample.row)
        pairs = zip(sample.likelihoods, sample.alone, strict=True)
        return [as_number(a - b, "the difference", sample.where) for a, b in pairs]
    lengths = _lengths(sample, HARNESS_LENGTHS[score], delimiter)
    return [value / length for value, length in zip(sample.likelihoods, lengths, strict=True)]


def _delimiters(samples: list[_Sample]) -> list[str]:
    """Return what may stand before every choice of the file: a blank, nothing, or more."""
    texts = [text for one in samples for text in one.texts] or [""]
    pairs = zip(min(texts), max(texts), strict=False)  # what these share, all between them do
    shared = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    shared = shared[:LONGEST_DELIMITER]
    usual = [" "] if shared.startswith(" ") else []
    longer = (shared[:n] for n in range(1, len(shared) + 1))
    # no choice is empty
    return [*usual, "", *(one for one in longer if one != " " and one not in texts)]


def _likelihood(response: Any, where: str) -> float:
    if not isinstance(response, (list, tuple)) or len(response) != 2:
        raise InputError(
            f"{where} is no multiple-choice sample",
            found=f"{response!r:.60} instead of a log-likelihood and a truth value",
            hint="samples of generated answers are not rankings",
        )
    return as_number(response[0], "the log-likelihood", where)


def _texts(row: Row) -> list[str]:
    """Return the choices' texts, as far as the arguments of the requests hold them."""
    arguments = row.get("arguments")
    if isinstance(arguments, dict):
        calls = [arguments.get(f"gen_args_{i}") for i in range(len(arguments))]
        texts = [call.get("arg_1") if isinstance(call, dict) else None for call in calls]
    else:
        calls = arguments if isinstance(arguments, list) else []
        texts = [call[1] if isinstance(call, list) and len(call) == 2 else None for call in calls]
    return [text for text in texts if isinstance(text, str)]


def _lengths(sample: _Sample, length: Callable[[str], int], delimiter: str) -> list[int]:
    lengths = [length(text.removeprefix(delimiter)) for text in sample.texts]
    if not lengths or not all(lengths):
        raise InputError(
            f"{sample.where}: the texts of the choices are not all in arguments",
            found=(
                f"{counted(sum(map(bool, lengths)), 'text')} for"
                f" {counted(len(sample.likelihoods), 'choice')}"
            ),
            hint="score 'raw' needs none",
        )
    if _in_question(sample.texts):
        raise InputError(
            f"{sample.where}: the choices stand in the question, and their lengths nowhere",
            found=f"{sample.texts[0]!r:.60} after each",
            hint="score 'raw' needs none",
        )
    return lengths


def _in_question(texts: Sequence[str]) -> bool:
    """Say whether all choices end alike: they differ inside the question, as in Winogrande."""
    return len(texts) > 1 and len(set(texts)) == 1


def _target(row: Row, texts: Sequence[str], n: int, where: str) -> frozenset[int]:
    target = required(row, "target", where)
    plain = [text.strip() for text in texts]
    if isinstance(target, str) and target.strip() in plain:
        if _in_question(texts):
            raise InputError(
                f"{where} does not say which choice is right",
                found=f"the target {target!r:.60}, which stands after every choice",
                hint="the harness keeps no number of the right choice where choices stand inside"
                " the question (Winogrande)",
            )
        # of equal choices the harness takes the first
        by_text = frozenset({plain.index(target.strip())})
        # a choice may read "2": then the number of a choice could be meant as well
        if not target.strip().isdecimal() or by_text == _indices(target, n, where):
            return by_text
    return _indices(target, n, where)


def _indices(value: Any, n: int, where: str) -> frozenset[int]:
    """Return the right choices: a whole number or a list of them, also as text."""
    found = value
    if isinstance(value, str):
        try:
            found = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            found = None
    numbers = found if isinstance(found, (list, tuple)) else [found]
    whole = [i for i in numbers if isinstance(i, int) and not isinstance(i, bool) and 0 <= i < n]
    if not whole or len(whole) < len(numbers):
        raise InputError(
            f"{where}: the right answer is not the number of a choice",
            found=f"{value!r:.60}, {counted(n, 'choice')}",
            hint="choices are counted from 0",
        )
    return frozenset(whole)


def _query_id(row: Row, where: str) -> str:
    return as_id(required(row, "doc_id", where), "doc_id", where)


def _is_one(accuracy: Any, where: str) -> bool:
    value = as_number(accuracy, "the accuracy", where)
    if value not in (0, 1):
        raise InputError(
            f"{where}: the accuracy of one question is neither 0 nor 1", found=f"{value:g}"
        )
    return value == 1


def _no_accuracy(where: str, wanted: str, row: Row) -> InputError:
    return InputError(
        f"{where} has no {wanted} to check the ranking against",
        found=f"the keys {some(row, 8)}",
        hint="choose a score whose accuracy the file holds",
    )
