"""lm-evaluation-harness: samples of small tasks, answered by a model that knows nothing."""

from __future__ import annotations

import json
import os
import random
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = os.environ["HF_DATASETS_OFFLINE"] = "1"

import lm_eval
from lm_eval.api.model import LM
from lm_eval.api.task import ConfigurableTask
from lm_eval.loggers import EvaluationTracker

WORDS = ["Paris", "Rome", "Ü-Öl", "a very long answer", "x", "kélé", "Oslo", "two words"]
N = 24
#: What each task adds to the plain one.
TASKS: dict[str, dict[str, Any]] = {
    "mutual": {"metrics": ["acc", "acc_norm", "acc_bytes", "acc_mutual_info"]},
    "text_target": {"doc_to_target": "{{choices[answer]}}"},
    "no_blank": {"target_delimiter": "", "metrics": ["acc", "acc_norm", "acc_bytes"]},
    "other_delimiter": {"target_delimiter": " -> ", "metrics": ["acc", "acc_norm", "acc_bytes"]},
    "in_question": {"doc_to_text": "{{answer}}", "doc_to_target": "was here."},
}


class Toy(LM):
    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        answers = []
        for request in requests:
            context, continuation = request.args
            rng = random.Random(f"{context}|{continuation}")
            answers.append((-rng.random() * (2 + len(continuation.encode())), rng.random() < 0.5))
        return answers

    def loglikelihood_rolling(self, requests: list[Any]) -> Any:
        raise NotImplementedError

    def generate_until(self, requests: list[Any]) -> Any:
        raise NotImplementedError


def task(name: str, data: Path, metrics: tuple[str, ...] = ("acc", "acc_norm"), **more: Any) -> Any:
    return ConfigurableTask(
        config={
            "task": name,
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": {"test": str(data)}},
            "test_split": "test",
            "output_type": "multiple_choice",
            "doc_to_text": "{{question}}\nAnswer:",
            "doc_to_choice": "{{choices}}",
            "doc_to_target": "{{answer}}",
            "metric_list": [{"metric": metric} for metric in metrics],
            **more,
        }
    )


def write(folder: Path) -> dict[str, Any]:
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "questions.jsonl"
        rows = []
        for i in range(N):
            choices = rng.sample(WORDS, 2 + i % 3)
            rows.append(
                {"question": f"Question {i}?", "choices": choices, "subject": f"s{i % 4}",
                 "answer": rng.randrange(len(choices))}
            )  # fmt: skip
        data.write_text("".join(json.dumps(row) + "\n" for row in rows))
        tasks = [task(name, data, **settings) for name, settings in TASKS.items()]
        found = lm_eval.simple_evaluate(
            model=Toy(), tasks=tasks, log_samples=True, bootstrap_iters=0
        )
    tracker = EvaluationTracker(output_path=str(folder))
    tracker.general_config_tracker.model_name_sanitized = ""
    tracker.date_id = "day"
    for name, samples in found["samples"].items():
        tracker.save_results_samples(task_name=name, samples=samples)
    own = {
        name: {key.split(",")[0]: value for key, value in scores.items()
               if key.endswith(",none") and "stderr" not in key}
        for name, scores in found["results"].items()
    }  # fmt: skip
    return {"version": version("lm-eval"), "tasks": own}
