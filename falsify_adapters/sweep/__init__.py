"""Many runs: graded by several processes or a cluster, kept one by one, gone on with after a kill.

One unit of work is one system on one benchmark with all its measures. ``workers`` says who does
the units, ``store`` keeps what is finished, ``finished`` is what both pass on.
"""
