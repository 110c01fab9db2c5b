#!/bin/sh
# Generates the client of the contract tests from the description of the API.
set -eu
cd "$(dirname "$0")"
oapi-codegen -config client.yaml ../openapi.yaml
