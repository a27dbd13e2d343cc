# Bochs, built from its source tree, with emulated VMX. It boots an ISO image.

BOCHS_VMX_CPU=corei7_skylake_x
BOCHS_CONFIGURE=(--with-nogui --enable-cpu-level=6 --enable-x86-64 --enable-vmx=2 --enable-svm --enable-avx --enable-evex
    --enable-all-optimizations --enable-pci --enable-long-phy-address)
# Number of instructions that Bochs emulates in a second of the time that it shows to the emulated host. The TSC counts
# instructions, but CPUID of the emulated processor promises 3.5 GHz. So the kernel's command line states the true
# frequency; otherwise Linux's clocks would run slower than its timers by that ratio. The number must not be much lower:
# at 40 MHz, a TSC that is slowed down to 1 kHz ticks within a short probe guest. Nor may it be much higher: at 3.5 GHz,
# emulating idle time takes minutes.
BOCHS_IPS=400000000
# Each zeroed byte counts as an instruction, so zeroing a huge page takes 5 ms of the emulated host's time. Everett
# slows a guest's TSC down so that it stands still, but its next tick comes sooner than that. So huge pages are off.
BOCHS_KERNEL="tsc_early_khz=$((BOCHS_IPS / 1000)) transparent_hugepage=never"

bochs_prepare() {
    [[ -x $bochs/configure ]] || fail "--bochs $bochs: no source of Bochs, it has no configure"
    bochs=$(cd "$bochs" && pwd)
    bochs_build
    packages iso xorriso isolinux syslinux-common
    bochs_iso "$work/host.iso"
}

# Fixes two faults of VMX in the source tree, if it has them (README.md describes them). Each fix is one line of
# cpu/vmx.cc.
bochs_mend() {
    local file=$bochs/cpu/vmx.cc info='VMread32(VMCS_32BIT_IDT_VECTORING_INFO)'
    sed -i -e '/^ *BX_CPU_THIS_PTR in_vmx_guest = true;$/{n;/handleInterruptMaskChange/!s/^/  handleInterruptMaskChange();\n/}' \
        -e "s/^\( *\)if (! BX_CPU_THIS_PTR in_event)\$/\1if (! ($info \& 0x80000000))/" "$file"
}

# Builds the tree if it is not built yet.
bochs_build() {
    local log=$logs/build.log
    [[ ! -x $bochs/bochs ]] || return 0
    need make g++
    echo "emulated-hosts/run: building $bochs, which takes minutes; log: $log" >&2
    bochs_mend
    (cd "$bochs" && ./configure "${BOCHS_CONFIGURE[@]}" && make) >"$log" 2>&1 </dev/null ||
        fail "Bochs could not be built; see $log"
}

# Writes an ISO image with the kernel and the initramfs.
bochs_iso() {
    local root=$work/iso
    mkdir -p "$root/isolinux"
    cp "$cache/iso/usr/lib/ISOLINUX/isolinux.bin" "$cache/iso/usr/lib/syslinux/modules/bios/ldlinux.c32" "$root/isolinux/"
    cp "$kernel_image" "$root/vmlinuz"
    cp "$initramfs_file" "$root/initrd"
    {
        printf 'SERIAL 0 115200\nDEFAULT host\nPROMPT 0\nTIMEOUT 1\n'
        printf 'LABEL host\n LINUX /vmlinuz\n INITRD /initrd\n APPEND %s %s\n' "$BOCHS_KERNEL" "$(kernel_words)"
    } >"$root/isolinux/isolinux.cfg"
    packages_exec iso usr/bin/xorriso -as mkisofs -quiet -o "$1" -b isolinux/isolinux.bin -c isolinux/boot.cat \
        -no-emul-boot -boot-load-size 4 -boot-info-table -R "$root" >"$logs/iso.log" 2>&1 ||
        fail "the ISO image could not be written; see $logs/iso.log"
}

# Prints the bochsrc options for a disk: bochs_disk CHANNEL FILE
bochs_disk() {
    local cylinders
    cylinders=$(($(stat -c %s "$2") / JOB_CYLINDER_BYTES))
    printf '%s: type=disk, mode=flat, path="%s", cylinders=%d, heads=16, spt=63\n' "$1" "$2" "$cylinders"
}

bochs_run() {
    local mib=${memory:-1024}
    job_pad "$work/out.disk"
    cat >"$work/bochsrc" <<END
config_interface: textconfig
display_library: nogui
romimage: file="$bochs/bios/BIOS-bochs-latest"
vgaromimage: file="$bochs/bios/VGABIOS-lgpl/VGABIOS-lgpl-latest.bin"
cpu: model=${cpu:-$BOCHS_VMX_CPU}, count=1, ips=$BOCHS_IPS, reset_on_triple_fault=0, ignore_bad_msrs=1
memory: guest=$mib, host=$mib
boot: cdrom
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata1: enabled=1, ioaddr1=0x170, ioaddr2=0x370, irq=15
$(bochs_disk ata0-master "$work/job.disk")
$(bochs_disk ata0-slave "$work/out.disk")
ata1-master: type=cdrom, path="$work/host.iso", status=inserted
pci: enabled=1, chipset=i440fx
clock: sync=none, time0=1767225600
com1: enabled=1, mode=file, dev="$logs/console.log"
com2: enabled=1, mode=file, dev="$logs/output.log"
log: $logs/bochs.log
panic: action=fatal
error: action=report
info: action=report
debug: action=ignore
END
    cd "$bochs"
    timeout -k 5 "$limit" ./bochs -q -f "$work/bochsrc"
}
