"""A server for agents over the Model Context Protocol: the gate as three tools.

:mod:`~falsify_adapters.mcp_server.tools` says what an agent reads of them,
:mod:`~falsify_adapters.mcp_server.server` speaks the protocol and calls
:mod:`~falsify_adapters.mcp_server.child`, a process per call that can be stopped, which does the
:mod:`~falsify_adapters.mcp_server.work` on inline data and on
:mod:`~falsify_adapters.mcp_server.files` below one folder.
"""
