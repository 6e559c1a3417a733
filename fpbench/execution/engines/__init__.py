"""Where steps are executed: this process, worker processes; packages add others."""
