"""The aggregator's gRPC services: who is calling, what may be asked, how answers and refusals travel.

Not here: decisions (`tallyveil_aggregator.intake`) and storage (`tallyveil_aggregator.store`).
"""
