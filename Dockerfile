# docker build -t transduce .
# docker run --rm -v "$PWD:/data" --user "$(id -u):$(id -g)" transduce train --train text.en text.de --out model
# docker run --rm -v "$PWD:/data:ro" -p 127.0.0.1:5000:5000 transduce serve model --host 0.0.0.0 --insecure
FROM python:3.12-slim

# For CPUs. With a GPU: --build-arg TORCH_INDEX=https://pypi.org/simple, and docker run --gpus all
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu

WORKDIR /opt/transduce
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir --extra-index-url "$TORCH_INDEX" -c constraints.txt ".[fast,fetch,zstd,serve,documents]" \
    && useradd --create-home transduce \
    && install -d -o transduce /data

ENV MPLCONFIGDIR=/tmp/matplotlib XDG_CACHE_HOME=/tmp/cache
USER transduce
WORKDIR /data
ENTRYPOINT ["transduce"]
CMD ["--help"]
