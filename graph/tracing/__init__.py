"""What tracers are shown of a run: LangChain's as metadata, OpenTelemetry as spans and metrics."""
