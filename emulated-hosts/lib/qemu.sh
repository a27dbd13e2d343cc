# QEMU from Debian packages, with SVM emulated by TCG.

# CPU model: a Zen 1 with nested paging and UMIP, which Everett's guests use. It has no RDRAND: no seed determines the
# numbers of RDRAND, and SVM cannot keep a guest from executing it.
QEMU_SVM_CPU='EPYC,+svm,+npt,+umip,-rdrand'

qemu_prepare() {
    packages qemu qemu-system-x86
}

qemu_run() {
    local folder=$cache/qemu
    local packages_before=(timeout -k 5 "$limit" env "QEMU_MODULE_DIR=$folder/usr/lib/x86_64-linux-gnu/qemu")
    packages_exec qemu usr/bin/qemu-system-x86_64 \
        -L "$folder/usr/share/qemu" -L "$folder/usr/share/seabios" \
        -accel tcg,thread=multi,tb-size=512 -machine pc -cpu "${cpu:-$QEMU_SVM_CPU}" -smp 1 -m "${memory:-2048}" \
        -kernel "$kernel_image" -initrd "$initramfs_file" -append "$(kernel_words)" \
        -drive "file=$work/job.disk,format=raw,if=ide,index=0,readonly=off,cache=unsafe" \
        -drive "file=$work/out.disk,format=raw,if=ide,index=1,cache=unsafe" \
        -nodefaults -display none -monitor none -no-reboot \
        -serial "file:$logs/console.log" -serial "file:$logs/output.log"
}
