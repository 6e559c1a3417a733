# fpbench as a program, and its curator:
#
#     docker build -t fpbench .
#     docker run --rm -v "$PWD:/work" fpbench run matrix.toml
#     docker run --rm -v "$PWD:/work" -p 8731:8731 fpbench curator serve people.csv --host 0.0.0.0 ...
#
# The second stage holds what is installed, without compilers or pip's cache, and runs as nobody
# special: what it writes into /work belongs to user 1000.
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY fpbench ./fpbench
COPY benchmarks ./benchmarks
COPY plugins/fpbench-curator ./plugins/fpbench-curator
COPY plugins/fpbench-dask ./plugins/fpbench-dask
COPY plugins/fpbench-membership ./plugins/fpbench-membership
RUN python -m venv /opt/fpbench \
    && /opt/fpbench/bin/python -m pip install --no-cache-dir \
        ".[ip,search,parquet,report,figures]" ./plugins/fpbench-curator \
        ./plugins/fpbench-dask ./plugins/fpbench-membership

FROM python:3.13-slim
COPY --from=build /opt/fpbench /opt/fpbench
RUN useradd --create-home --uid 1000 fpbench
ENV PATH=/opt/fpbench/bin:$PATH
USER 1000
WORKDIR /work
EXPOSE 8731
ENTRYPOINT ["fpbench"]
CMD ["--help"]
