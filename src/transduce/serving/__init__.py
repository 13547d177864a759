"""A translator on the network: the HTTP API, batching of requests, limits, the web page."""
