# Two stages: pip and its cache stay behind. docs/how-to/deploy-in-a-container.md
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md constraints.txt ./
COPY src ./src
RUN python -m venv /opt/understudy \
 && /opt/understudy/bin/pip install --no-cache-dir --disable-pip-version-check \
      --constraint constraints.txt '.[gateway,media,prices,proxy,redis,tracing]'

FROM python:3.13-slim
LABEL org.opencontainers.image.title="understudy" \
      org.opencontainers.image.description="Failover gateway for language models" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/opt/understudy/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1
COPY --from=build /opt/understudy /opt/understudy
# A number, so that Kubernetes can see that it is not root.
USER 10001:10001
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
  CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8080/healthz', timeout=2)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["understudy"]
CMD ["serve", "--config", "/etc/understudy/understudy.toml", "--host", "0.0.0.0"]
