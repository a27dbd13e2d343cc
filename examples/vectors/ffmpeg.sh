# Encodes and decodes a generated video and a generated sound with ffmpeg, and prints a digest of each result. Further options
# for ffmpeg are arguments, such as -cpuflags.
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
video='testsrc2=size=352x288:rate=25:duration=1'
sound='sine=frequency=440:beep_factor=4:duration=2,aresample=48000'

# Runs ffmpeg with one thread. `-bitexact` leaves out versions and dates.
of() {
    ffmpeg -nostdin -hide_banner -loglevel error $options -threads 1 -filter_threads 1 "$@"
}
# Encodes an input of lavfi with further arguments into a file, and prints the digest of the file and those of the decoded
# frames as one.
round() {
    name=$1 input=$2 file=$place/$3
    shift 3
    of -f lavfi -i "$input" -pix_fmt yuv420p -threads 1 -bitexact -fflags +bitexact "$@" "$file"
    frames=$(of -i "$file" -bitexact -f framemd5 - | md5sum | cut -d ' ' -f 1)
    echo "$name $(md5sum < "$file" | cut -d ' ' -f 1) $frames"
}

options=$*
round mpeg4 "$video" a.avi -c:v mpeg4 -q:v 4 -mbd rd
round h264 "$video" a.mp4 -c:v libx264 -preset medium
round hevc "$video" b.mp4 -c:v libx265 -preset ultrafast -x265-params pools=none:frame-threads=1:log-level=error
round vp9 "$video" a.webm -c:v libvpx-vp9 -cpu-used 5 -b:v 500k
round ffv1 "$video" a.mkv -c:v ffv1
round scaled "$video,scale=640:480:flags=lanczos+accurate_rnd+bitexact,hflip,unsharp,yadif" b.mkv -c:v ffv1
round aac "$sound" a.m4a -c:a aac
round mp3 "$sound" a.mp3 -c:a libmp3lame
round opus "$sound" a.opus -c:a libopus
round flac "$sound" a.flac -c:a flac
