"""gRPC channels to an aggregator, and what their failures mean.

Not here: the calls (`tallyveil_client.surveys`, the agent's upload, the consumer) and what to do after a failure.
Whoever calls wraps it in `calling`, so that no gRPC error ever leaves this package's edge.
"""

from __future__ import annotations

from tallyveil_client.transport.channel import Channel, calling, connect
from tallyveil_client.transport.endpoint import Endpoint
from tallyveil_client.transport.failures import Refused, RefusedForNow, translate

__all__ = ["Channel", "Endpoint", "Refused", "RefusedForNow", "calling", "connect", "translate"]
