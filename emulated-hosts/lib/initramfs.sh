# The initramfs of the emulated host: busybox, the modules of KVM and of IDE disks, and guest/init. It is the same for
# all commands.

INITRAMFS_MODULES=(kvm-amd kvm-intel ccp ata_piix sd_mod)

# Prints the files of a module and of its dependencies, relative to the folder of modules.
initramfs_module_files() {
    awk -v name="$1" -F ': *' '{
        file = $1; sub(".*/", "", file); sub("[.]ko.*", "", file); gsub("_", "-", file)
        gsub("_", "-", name)
        if (file == name) { print $1; gsub(" +", "\n", $2); if ($2 != "") print $2 }
    }' "$2/modules.dep"
}

# Sets initramfs_file. Builds that file if it is missing or older than guest/init.
initramfs() {
    initramfs_file=$cache/initramfs-$kernel_version.cpio
    local root=$work/initramfs module file target
    [[ ! -f $initramfs_file || $HOSTS/guest/init -nt $initramfs_file || $HOSTS/lib/initramfs.sh -nt $initramfs_file ]] || return 0
    target=$root/lib/modules/$kernel_version
    mkdir -p "$root"/{bin,proc,sys,dev,tmp,root,job,results,etc,lib64} "$target"
    cp "$busybox" "$root/bin/busybox"
    install -m 755 "$HOSTS/guest/init" "$root/init"
    ln -s busybox "$root/bin/sh"
    # depmod expects the modules in lib/modules of a folder.
    mkdir -p "$work/depmod/lib/modules"
    ln -s "$kernel_modules" "$work/depmod/lib/modules/$kernel_version"
    [[ -f $kernel_modules/modules.dep ]] || "$busybox" depmod -b "$work/depmod" "$kernel_version"
    for module in "${INITRAMFS_MODULES[@]}"; do
        file=$(initramfs_module_files "$module" "$kernel_modules")
        # A module that is built into the kernel has no file.
        while read -r file; do
            [[ -n $file ]] || continue
            mkdir -p "$target/$(dirname "$file")"
            cp "$kernel_modules/$file" "$target/$file"
        done <<<"$file"
    done
    "$busybox" depmod -b "$root" "$kernel_version"
    (cd "$root" && find . | "$busybox" cpio -o -H newc 2>/dev/null) >"$work/initramfs.cpio"
    mv "$work/initramfs.cpio" "$initramfs_file"
}

# Prints the kernel's command line. It makes a reboot a triple fault, which ends the emulator.
kernel_words() {
    printf 'console=ttyS0 quiet loglevel=4 panic=-1 reboot=t nokaslr mitigations=off %s' "$kernel"
}
