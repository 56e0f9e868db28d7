#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "platform/stacks/program_stack.hpp"

#if defined(__x86_64__) && defined(DLFO_STRUCT_HAS_EH_DBASE)

namespace tensorpool::platform {
namespace {

constexpr std::size_t max_frames = 256;

/// Return addresses less 1. Signal handlers add to it, so it does not allocate.
struct Frames {
    std::uintptr_t addresses[max_frames] = {};
    std::size_t count = 0;

    /// Returns those outside of the function that captured them.
    std::vector<std::uintptr_t> callers() const {
        return {addresses + std::min<std::size_t>(1, count), addresses + count};
    }
};

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* argument) {
    Frames& frames = *static_cast<Frames*>(argument);
    if (_Unwind_GetIP(context) == 0 || frames.count == max_frames) return _URC_END_OF_STACK;
    frames.addresses[frames.count++] = _Unwind_GetIP(context) - 1;
    return _URC_NO_REASON;
}

/// Two captures of one stack.
struct Captures {
    Frames own;
    Frames compilers;
    const std::uintptr_t* slots[max_frames] = {};
};
Captures* captures = nullptr;

[[gnu::noinline]] void capture_both() {
    captures->own.count = capture_stack(captures->own.addresses, max_frames, captures->slots);
    captures->compilers.count = 0;
    _Unwind_Backtrace(add_frame, &captures->compilers);
}

/// Captures the stack below `run`, and expects that both ways find the same calls.
void expect_same_frames(const std::function<void()>& run, std::size_t least) {
    Captures found;
    captures = &found;
    run();
    ASSERT_GT(found.own.count, least);
    EXPECT_EQ(found.own.callers(), found.compilers.callers());
}

template <int depth>
struct Deep {
    [[gnu::noinline]] static void call() {
        Deep<depth - 1>::call();
        asm volatile("" ::: "memory");
    }
};
template <>
struct Deep<0> {
    [[gnu::noinline]] static void call() {
        capture_both();
        asm volatile("" ::: "memory");
    }
};

[[gnu::noinline]] void with_variable_frame(std::size_t bytes, int depth) {
    auto* const room = static_cast<volatile char*>(__builtin_alloca(bytes));
    room[0] = 1;
    room[bytes - 1] = 1;
    if (depth != 0) {
        with_variable_frame(bytes * 2, depth - 1);
    } else {
        capture_both();
    }
    asm volatile("" ::"r"(room) : "memory");
}

[[gnu::noinline]] void with_aligned_frame(int depth) noexcept {
    alignas(128) volatile char room[128] = {};
    if (depth != 0) {
        with_aligned_frame(depth - 1);
    } else {
        capture_both();
    }
    asm volatile("" ::"r"(room) : "memory");
}

int compare_and_capture(const void* a, const void* b) {
    capture_both();
    return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

TEST(CaptureStack, FindsTheCallsOfTemplates) {
    expect_same_frames(Deep<20>::call, 20);
}

TEST(CaptureStack, FindsTheCallersOfFunctionsWithVariableFrames) {
    expect_same_frames([] { with_variable_frame(16, 6); }, 7);
}

TEST(CaptureStack, FindsTheCallersOfFunctionsWithAlignedFrames) {
    expect_same_frames([] { with_aligned_frame(4); }, 5);
}

TEST(CaptureStack, FindsTheCallersOfTheCLibrary) {
    expect_same_frames(
        [] {
            int numbers[] = {3, 1, 2};
            std::qsort(numbers, 3, sizeof(int), compare_and_capture);
        },
        3);
}

TEST(CaptureStack, FindsTheCallersOfTheStandardLibrary) {
    expect_same_frames(
        [] {
            std::once_flag flag;
            std::call_once(flag, [] {
                const std::vector<int> numbers{1, 2};
                std::for_each(numbers.begin(), numbers.end(), [](int) {
                    const std::function<void()> call = capture_both;
                    call();
                });
            });
        },
        4);
}

TEST(CaptureStack, FindsTheBeginningOfAThread) {
    expect_same_frames([] { std::thread(Deep<3>::call).join(); }, 4);
}

void handle(int) {
    capture_both();
    asm volatile("" ::: "memory");
}

/// A handler of SIGUSR1, on a stack of its own or on the thread's.
class Handler {
public:
    explicit Handler(int flags) {
        stack_t own{};
        own.ss_sp = stack_.data();
        own.ss_size = stack_.size();
        sigaltstack(&own, &stack_before_);
        struct sigaction action {};
        action.sa_handler = handle;
        action.sa_flags = flags;
        sigaction(SIGUSR1, &action, &before_);
    }
    ~Handler() {
        sigaction(SIGUSR1, &before_, nullptr);
        sigaltstack(&stack_before_, nullptr);
    }
    Handler(const Handler&) = delete;
    Handler& operator=(const Handler&) = delete;

private:
    std::vector<char> stack_ = std::vector<char>(256 << 10);
    stack_t stack_before_{};
    struct sigaction before_ {};
};

TEST(CaptureStack, FindsWhatASignalInterrupted) {
    for (const int flags : {0, SA_ONSTACK}) {
        const Handler handler(flags);
        expect_same_frames([] { std::raise(SIGUSR1); }, 4);
    }
}

TEST(CaptureStack, KnowsTheSlotsOfReturnAddressesOnly) {
    Captures found;
    captures = &found;
    const Handler handler(SA_ONSTACK);
    Deep<3>::call();
    // Of callers that have not returned.
    ASSERT_GT(found.own.count, 9U);
    for (std::size_t i = 6; i != 9; ++i) EXPECT_EQ(*found.slots[i], found.own.addresses[i] + 1);
    std::raise(SIGUSR1);
    EXPECT_EQ(std::count(found.slots, found.slots + found.own.count, nullptr), 1);
}

TEST(CaptureStack, StopsWhenThereIsNoRoom) {
    std::uintptr_t frames[3] = {1, 1, 1};
    EXPECT_EQ(capture_stack(frames, 2), 2U);
    EXPECT_EQ(frames[2], 1U);
    EXPECT_EQ(capture_stack(frames, 0), 0U);
}

TEST(CaptureStack, PreservesErrno) {
    errno = ERANGE;
    std::uintptr_t frames[max_frames];
    EXPECT_NE(capture_stack(frames, max_frames), 0U);
    EXPECT_EQ(errno, ERANGE);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

extern "C" {
void tensorpool_test_call_on(void* stack, void (*function)());
void tensorpool_test_end();
}
// Calls the function on the stack, whose first word it finds as its return address. The caller's
// stack pointer is kept in rbx, which the function preserves; it ends by tensorpool_test_end.
asm(R"(
.text
.globl tensorpool_test_call_on
tensorpool_test_call_on:
    pushq %rbx
    pushq %rbp
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, tensorpool_test_stack(%rip)
    movq %rdi, %rsp
    xorl %ebp, %ebp
    jmpq *%rsi
.globl tensorpool_test_end
tensorpool_test_end:
    movq tensorpool_test_stack(%rip), %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbp
    popq %rbx
    ret
.bss
.balign 8
tensorpool_test_stack:
    .zero 8
.text
)");

std::uintptr_t frames_of_body[max_frames];
std::size_t frames_found = 0;

[[gnu::noinline]] void body() {
    frames_found = capture_stack(frames_of_body, max_frames);
    tensorpool_test_end();
}

/// Stacks that a coroutine may have.
class MadeStack : public ::testing::Test {
protected:
    static constexpr std::size_t bytes = 64 << 10;
    static constexpr std::size_t page = 4096;

    MadeStack()
        : begin_(static_cast<char*>(mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
        mprotect(begin_ + bytes, page, PROT_NONE);
    }
    ~MadeStack() override { munmap(begin_, bytes + page); }

    char* end() const { return begin_ + bytes; }

    /// Returns the calls that `body` finds if its return address is this, and lies `above` bytes
    /// below the end of the stack.
    std::size_t frames_from(std::uintptr_t return_address, std::size_t above = 72) const {
        auto* const first = reinterpret_cast<std::uintptr_t*>(end() - above);
        *first = return_address;
        tensorpool_test_call_on(first, body);
        return frames_found;
    }

private:
    char* begin_;
};

TEST_F(MadeStack, EndsAtAMarkerThatIsNoAddress) {
    EXPECT_EQ(frames_from(0xDEAD'DEAD'DEAD'DEAD), 1U);
    EXPECT_EQ(frames_from(0), 1U);
    EXPECT_EQ(frames_from(1), 1U);
    EXPECT_EQ(frames_from(UINTPTR_MAX), 1U);
}

TEST_F(MadeStack, EndsAtAPageThatIsNotMapped) {
    EXPECT_EQ(frames_from(reinterpret_cast<std::uintptr_t>(end() + 100)), 1U);
}

TEST_F(MadeStack, EndsAtDataOfTheProgram) {
    static int data = 1;
    EXPECT_EQ(frames_from(reinterpret_cast<std::uintptr_t>(&data)), 1U);
    EXPECT_EQ(frames_from(reinterpret_cast<std::uintptr_t>(end() - 8)), 1U);
}

TEST_F(MadeStack, EndsAtGeneratedCode) {
    void* const code =
        mmap(nullptr, page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(code, MAP_FAILED);
    EXPECT_EQ(frames_from(reinterpret_cast<std::uintptr_t>(code) + 16), 1U);
    munmap(code, page);
}

TEST_F(MadeStack, EndsAtCodeWithoutADescriptionWhichItKeeps) {
    const auto address = reinterpret_cast<std::uintptr_t>(&tensorpool_test_end);
    ASSERT_EQ(frames_from(address + 7), 2U);
    EXPECT_EQ(frames_of_body[1], address + 6);
}

TEST_F(MadeStack, EndsWhereTheMappingEnds) {
    // The caller has its frame behind the end.
    const auto caller = reinterpret_cast<std::uintptr_t>(&with_aligned_frame) + 1;
    EXPECT_LE(frames_from(caller, 8), 2U);
    const auto deep = reinterpret_cast<std::uintptr_t>(&Deep<20>::call) + 1;
    EXPECT_LE(frames_from(deep, 8), 2U);
}

std::uintptr_t restorer = 0;
ucontext_t interrupted;

void note_restorer(int, siginfo_t*, void* context) {
    restorer = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
    std::memcpy(&interrupted, context, sizeof interrupted);
}

TEST_F(MadeStack, ACycleOfSignalFramesEnds) {
    struct sigaction action {};
    struct sigaction before {};
    action.sa_sigaction = note_restorer;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGUSR1, &action, &before);
    std::raise(SIGUSR1);
    sigaction(SIGUSR1, &before, nullptr);
    ASSERT_NE(restorer, 0U);
    constexpr std::size_t above = 8200;
    auto* const first = reinterpret_cast<std::uintptr_t*>(end() - above);
    interrupted.uc_mcontext.gregs[REG_RSP] = reinterpret_cast<std::intptr_t>(first);
    interrupted.uc_mcontext.gregs[REG_RIP] = reinterpret_cast<std::intptr_t>(&body);
    std::memcpy(static_cast<void*>(first + 1), &interrupted, sizeof interrupted);
    EXPECT_EQ(frames_from(restorer, above), max_frames);
}

extern "C" void run_in_context() {
    frames_found = capture_stack(frames_of_body, max_frames);
}

TEST_F(MadeStack, ContextsOfTheCLibraryEnd) {
    static ucontext_t own;
    ucontext_t made;
    ASSERT_EQ(getcontext(&made), 0);
    made.uc_stack.ss_sp = end() - bytes;
    made.uc_stack.ss_size = bytes;
    made.uc_link = &own;
    makecontext(&made, run_in_context, 0);
    ASSERT_EQ(swapcontext(&own, &made), 0);
    EXPECT_GE(frames_found, 1U);
    EXPECT_LE(frames_found, 2U);
}

#endif

}  // namespace
}  // namespace tensorpool::platform

#endif
