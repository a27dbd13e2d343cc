// Prints what the processor does where processors, emulators and manuals differ, one line per case.
// Usage: gcc -static -O1 processor.c && ./a.out
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

static volatile uint64_t seen_flags, skip;

static void handler(int signal, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    (void)signal, (void)info;
    seen_flags = registers[REG_EFL];
    registers[REG_RIP] += skip;
}

static void pushed_by_fault(const char *name, void (*fault)(void)) {
    seen_flags = 0;
    fault();
    printf("%s: RF in the pushed RFLAGS is %d\n", name, (int)(seen_flags >> 16 & 1));
}

static void ud2(void) { skip = 2; __asm__ volatile("ud2" ::: "memory"); }
static void page_fault(void) { skip = 2; __asm__ volatile("mov (%%rax), %%eax" ::"a"(0) : "memory"); }
static void int3(void) { skip = 0; __asm__ volatile("int3" ::: "memory"); }

int main(void) {
    setvbuf(stdout, 0, _IOLBF, 0);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    int signals[] = {SIGILL, SIGSEGV, SIGTRAP};
    for (int n = 0; n < 3; n++) sigaction(signals[n], &action, 0);
    pushed_by_fault("UD2", ud2);
    pushed_by_fault("page fault", page_fault);
    pushed_by_fault("INT3 (a trap)", int3);

    uint16_t word = 0;
    __asm__ volatile("fninit; fld1; fchs; fsqrt; fnstsw %0" : "=a"(word));
    printf("FSQRT of -1: status word %#x\n", word);

    static struct { uint64_t low, high; } __attribute__((aligned(16))) cell = {1, 2};
    for (int locked = 0; locked < 2; locked++)
        for (int carry = 0; carry < 2; carry++)
            for (int equal = 0; equal < 2; equal++) {
                uint64_t flags, a = cell.low + !equal, d = cell.high;
                if (locked)
                    __asm__ volatile("cmp %4, %5; lock cmpxchg16b %0; pushfq; pop %1" : "+m"(cell), "=r"(flags), "+a"(a), "+d"(d) : "r"((uint64_t)carry), "r"((uint64_t)0), "b"(1), "c"(2) : "cc");
                else
                    __asm__ volatile("cmp %4, %5; cmpxchg16b %0; pushfq; pop %1" : "+m"(cell), "=r"(flags), "+a"(a), "+d"(d) : "r"((uint64_t)carry), "r"((uint64_t)0), "b"(1), "c"(2) : "cc");
                printf("%sCMPXCHG16B, CF %d before, %s: CF %d, ZF %d\n", locked ? "LOCK " : "", carry, equal ? "equal" : "other", (int)(flags & 1), (int)(flags >> 6 & 1));
            }
    uint16_t selectors[] = {0x33, 0x2b, 0x10};
    for (int n = 0; n < 3; n++) {
        uint32_t rights = 0;
        uint8_t valid = 0;
        __asm__ volatile("lar %2, %0; setz %1" : "=r"(rights), "=q"(valid) : "r"((uint32_t)selectors[n]) : "cc");
        printf("LAR of %#x: %d, %#x; bits 19:16 are %#x\n", selectors[n], valid, rights, rights >> 16 & 15);
    }
    return 0;
}
