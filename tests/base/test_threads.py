"""One thread of native libraries, and what was there before afterwards."""

import os
from contextlib import suppress

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from fpbench.base.threads import ONE_THREAD, use_one_thread


def test_one_thread_is_used_and_put_back(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    np.ones((2, 2)) @ np.ones((2, 2))
    with threadpool_limits(2):
        with suppress(ZeroDivisionError), use_one_thread():
            assert {pool["num_threads"] for pool in threadpool_info()} == {1}
            assert {name: os.environ[name] for name in ONE_THREAD} == ONE_THREAD
            raise ZeroDivisionError
        assert {pool["num_threads"] for pool in threadpool_info()} == {2}
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ
