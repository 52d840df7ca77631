FROM python:3.11-slim

WORKDIR /srv/haplan
COPY pyproject.toml constraints.txt README.md ./
COPY client client
COPY cluster_profiles cluster_profiles
COPY costmodel costmodel
COPY planner planner
COPY runner runner
COPY service service
RUN PIP_CONSTRAINT=constraints.txt pip install --no-cache-dir ./client '.[service]' \
    && useradd --system --create-home haplan \
    && install -d -o haplan /var/lib/haplan

ENV NUMBA_CACHE_DIR=/tmp/numba-cache
USER haplan
EXPOSE 8765
VOLUME /var/lib/haplan
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD \
    python -c "import urllib.request as u; u.urlopen('http://127.0.0.1:8765/healthz', timeout=2)"
CMD ["haplan", "serve", "--host", "0.0.0.0", "--database", "sqlite:////var/lib/haplan/plans.sqlite3"]
