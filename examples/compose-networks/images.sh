#!/bin/sh
# Makes the images of compose.yaml, as the script of the web example does.
here=$(cd "$(dirname "$0")" && pwd)
exec sh "$here/../compose-web/images.sh" "${1:-$here/images}" python redis
