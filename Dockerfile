# The course on a hub of containers. Two images: what learners' servers run, and what formgrader and the exchange run.
#   docker build -t tilelab-hub .
#   docker build -t tilelab-hub-grader --target grader .
FROM python:3.12-slim-bookworm AS base
# g++: emulated CUDA C++; bubblewrap: the judge's sandbox; tini: ends what a server leaves behind.
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap g++ tini \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/tilelab
COPY pyproject.toml constraints.txt README.md LICENSE LICENSE-TEXT ./
COPY src src
RUN python -m venv .venv && .venv/bin/pip install --no-cache-dir -c constraints.txt '.[book,grade,hub]'
RUN useradd --uid 1000 --create-home --shell /bin/bash jovyan
ENV PATH=/opt/tilelab/.venv/bin:$PATH LANG=C.UTF-8
ENTRYPOINT ["tini", "--"]

FROM base AS grader
COPY tools tools
COPY notebooks notebooks
COPY solutions solutions
COPY autograder autograder
RUN .venv/bin/python autograder/hub/derived.py --course autograder/course.toml --to /opt/tilelab
RUN install -d -o jovyan -g jovyan /srv/tilelab
USER 1000
WORKDIR /srv/tilelab

# Last, so that it is what is built unless told: no masters, no checks, only the configuration for learners and teachers.
FROM base AS learner
COPY --from=grader /opt/tilelab/etc/limits.toml etc/
COPY --from=grader /opt/tilelab/etc/learner etc/learner
COPY --from=grader /opt/tilelab/etc/teacher etc/teacher
USER 1000
WORKDIR /home/jovyan
CMD ["jupyterhub-singleuser"]
