"""Where steps are executed: this process, worker processes, a dask cluster."""
