"""Files as other tools really write them: one script per tool, and what each wrote once.

``python -m tests.tools NAME FOLDER`` needs the tool alone, in an environment of its own. What it
wrote stands in ``tests/data/tools/NAME``, with the tool's version and its own scores in
``expected.json``. The tests read these files, or new ones where the tool is installed.
"""
