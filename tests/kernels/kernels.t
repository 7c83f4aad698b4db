#!/bin/sh
# What is checked in other kernels, in one of them: `make check-kernels` takes all.
cd "$(dirname "$0")/../.." || exit 1
KERNELS=${KERNELS:-6.1} exec scripts/check-kernels.sh
