# One image for every role; `queue` is Valkey with its data folder given to the same user.
# `make compose-init` writes the user's and group's numbers into .env; docker-compose.yml hands them over.

ARG PYTHON_IMAGE=python:3.13-slim-trixie
ARG VALKEY_IMAGE=valkey/valkey:9.0

FROM ${PYTHON_IMAGE} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_NO_INPUT=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
COPY requirements-build.lock requirements-runtime.lock ./
# wheels only: there is no compiler here, and nothing of a dependency is run while it is installed
RUN python3 -m venv tools \
    && tools/bin/python -m pip install --quiet --only-binary=:all: --require-hashes -r requirements-build.lock \
    && python3 -m venv /srv/knowledge \
    && /srv/knowledge/bin/python -m pip install --quiet --only-binary=:all: --require-hashes -r requirements-runtime.lock
COPY . .
RUN tools/bin/python -m hatchling build -t wheel -d wheel \
    && /srv/knowledge/bin/python -m pip install --quiet --no-deps wheel/*.whl \
    && /srv/knowledge/bin/python -m pip uninstall --quiet --yes pip

FROM ${PYTHON_IMAGE} AS runtime
ARG KNOWLEDGE_UID=10001
ARG KNOWLEDGE_GID=10001
COPY --from=build /srv/knowledge /srv/knowledge
# a new named volume takes owner and mode of the folder that it is mounted over
RUN install -d -m 0700 -o ${KNOWLEDGE_UID} -g ${KNOWLEDGE_GID} /stores
ENV PATH=/srv/knowledge/bin:/usr/local/bin:/usr/bin:/bin HOME=/tmp LANG=C.UTF-8 \
    PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER ${KNOWLEDGE_UID}:${KNOWLEDGE_GID}
WORKDIR /stores
ENTRYPOINT ["knowledge"]
CMD ["--help"]

FROM ${VALKEY_IMAGE} AS queue
ARG KNOWLEDGE_UID=10001
ARG KNOWLEDGE_GID=10001
USER root
RUN install -d -m 0700 -o ${KNOWLEDGE_UID} -g ${KNOWLEDGE_GID} /queue
USER ${KNOWLEDGE_UID}:${KNOWLEDGE_GID}
WORKDIR /queue
ENTRYPOINT ["valkey-server"]

# what is built when no target is named
FROM runtime
