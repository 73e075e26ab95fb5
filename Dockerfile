# haversack in a container: built in the first stage, alone in the second.
#
#     docker build -t haversack .
#     docker run --rm -v "$PWD:/work" haversack simulate --device galaxy-s10 --model resnet50 --batch 32 --policy sage

FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --locked --release --config 'profile.release.lto="thin"' --config 'profile.release.strip="symbols"' \
    && cp target/release/haversack /haversack

FROM debian:bookworm-slim
COPY --from=build /haversack /usr/local/bin/haversack
COPY --from=build /src/LICENSE-APACHE /src/LICENSE-MIT /usr/share/doc/haversack/
# Results belong to whoever asked for them: --user "$(id -u):$(id -g)".
WORKDIR /work
ENTRYPOINT ["haversack"]
CMD ["--help"]
