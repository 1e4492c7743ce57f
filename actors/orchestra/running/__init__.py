"""From a plan to ended tasks: orchestrator, coordinator and worker."""
