# syntax=docker/dockerfile:1
# The images of Attune. Each runs as the numeric user 10001 and writes only below /tmp, so that a read-only root
# file system is enough:
#
#   docker build --target executor      -t attune-executor .        # both programs, also the dashboard
#   docker build --target worker-shell  -t attune-worker-shell .
#   docker build --target worker-python -t attune-worker-python .
#   docker build --target worker-node   -t attune-worker-node .
#
# --build-arg VERSION=$(git describe --tags --always) names the version. A base image of your own is
# --build-arg BUILD_IMAGE=… or --build-arg WORKER_IMAGE=…
ARG BUILD_IMAGE=golang:1.26-trixie
ARG WORKER_IMAGE=debian:trixie-slim

FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS build
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=
ARG COMMIT=
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION -X main.commit=$COMMIT" \
    -o /out/usr/bin/ ./cmd/attune-executor ./cmd/attune-tui
# The image of the executor has nothing but these files.
RUN mkdir -p /out/etc/ssl/certs /out/etc/attune /out/home/attune /out/tmp && \
    chmod 1777 /out/tmp && chown 10001:10001 /out/home/attune && \
    cp /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/ && \
    cp deploy/config.docker.yaml /out/etc/attune/config.yaml && \
    echo 'attune:x:10001:10001::/home/attune:/sbin/nologin' >/out/etc/passwd && \
    echo 'attune:x:10001:' >/out/etc/group

FROM scratch AS executor
COPY --from=build /out/ /
ENV PATH=/usr/bin HOME=/home/attune ATTUNE_CONFIG=/etc/attune/config.yaml
USER 10001:10001
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s --retries=3 CMD ["attune-executor", "health"]
ENTRYPOINT ["attune-executor"]
CMD ["serve"]

FROM ${WORKER_IMAGE} AS worker
# tini reaps processes that actions leave behind.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates tini && rm -rf /var/lib/apt/lists/* && \
    groupadd --gid 10001 attune && useradd --uid 10001 --gid 10001 --create-home --shell /usr/sbin/nologin attune
COPY --from=build /out/usr/bin/attune-executor /usr/bin/attune-executor
COPY --from=build /out/etc/attune /etc/attune
ENV ATTUNE_CONFIG=/etc/attune/config.yaml
USER 10001:10001
EXPOSE 9102
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s --retries=3 \
    CMD ["attune-executor", "health", "--address", "127.0.0.1:9102"]
ENTRYPOINT ["/usr/bin/tini", "--", "attune-executor"]
CMD ["worker", "--metrics", "127.0.0.1:9102"]

FROM worker AS worker-shell
USER root
RUN apt-get update && apt-get install -y --no-install-recommends curl jq && rm -rf /var/lib/apt/lists/*
USER 10001:10001

FROM worker AS worker-python
USER root
RUN apt-get update && apt-get install -y --no-install-recommends python3 && rm -rf /var/lib/apt/lists/*
USER 10001:10001

FROM worker AS worker-node
USER root
RUN apt-get update && apt-get install -y --no-install-recommends nodejs && rm -rf /var/lib/apt/lists/*
USER 10001:10001
