// A program with coroutines as small libraries make them: stacks of their own, whose last return
// address is no code. The argument says what it is. The heap profile walks these stacks.

#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "interpose/interposed.hpp"

namespace {

using namespace tensorpool::testing;

constexpr std::size_t stack_bytes = 64 << 10;
constexpr int rounds = 20;
constexpr std::size_t block_bytes = 1 << 20;

void allocate() {
    std::free(hidden(std::malloc(block_bytes)));
}

char* make_stack() {
    void* const stack =
        mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect(stack != MAP_FAILED, "a stack");
    return static_cast<char*>(stack);
}

ucontext_t main_context;
ucontext_t own_context;

void run_in_context() {
    for (;;) {
        allocate();
        swapcontext(&own_context, &main_context);
    }
}

void run_contexts() {
    getcontext(&own_context);
    own_context.uc_stack.ss_sp = make_stack();
    own_context.uc_stack.ss_size = stack_bytes;
    own_context.uc_link = &main_context;
    makecontext(&own_context, run_in_context, 0);
    for (int i = 0; i != rounds; ++i) swapcontext(&main_context, &own_context);
}

#ifdef __x86_64__

extern "C" void coroutine_ends_switch(void** from, void* to);
asm(R"(
.text
.globl coroutine_ends_switch
coroutine_ends_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");

void* main_stack = nullptr;
void* own_stack = nullptr;

void run_on_own_stack() {
    for (;;) {
        allocate();
        coroutine_ends_switch(&own_stack, main_stack);
    }
}

/// Runs a coroutine with this last return address, which is the last word of its stack.
void run_with_end(std::uintptr_t return_address) {
    constexpr int saved_registers = 6;
    auto* words = reinterpret_cast<std::uintptr_t*>(make_stack() + stack_bytes);
    *--words = return_address;
    *--words = reinterpret_cast<std::uintptr_t>(&run_on_own_stack);
    for (int i = 0; i != saved_registers; ++i) *--words = 0;
    own_stack = words;
    for (int i = 0; i != rounds; ++i) coroutine_ends_switch(&main_stack, own_stack);
}

void run(const char* end) {
    static int data = 1;
    char* const closed = make_stack();
    mprotect(closed, stack_bytes, PROT_NONE);
    if (std::strcmp(end, "marker") == 0) run_with_end(0xDEAD'DEAD'DEAD'DEAD);
    if (std::strcmp(end, "closed_page") == 0)
        run_with_end(reinterpret_cast<std::uintptr_t>(closed));
    if (std::strcmp(end, "data") == 0) run_with_end(reinterpret_cast<std::uintptr_t>(&data));
    if (std::strcmp(end, "context") == 0) run_contexts();
}

#else

void run(const char*) {
    run_contexts();
}

#endif

}  // namespace

int main(int, char** arguments) {
    expect_interposed();
    run(arguments[1]);
    if (failures == 0) std::puts("fine");
    return failures == 0 ? 0 : 1;
}
