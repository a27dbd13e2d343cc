#!/bin/sh
# Compiles the program of this example, with debug information, for any Linux.
cd "$(dirname "$0")" && exec cc -g -O1 -static -Wall -o mirror mirror.c
