export PYTHONPATH=/tmp/lead/i3/core:/tmp/lead/i3/client:/tmp/lead/i3/aggregator:/tmp/lead/i3/bench:/tmp/lead/i3/examples
exec "$@"
