#include "replay/allocator_task.hpp"

#include <dlfcn.h>
#include <sys/types.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <tensorpool/memory_pool.hpp>

#include "replay/gauges.hpp"
#include "replay/performance.hpp"

namespace tensorpool::command::replay {
namespace {

constexpr int argument_count = 6;

/// Returns whether `malloc` is a jemalloc that is configured to keep freed memory forever.
bool never_decays() noexcept {
    using Mallctl = int (*)(const char*, void*, std::size_t*, void*, std::size_t);
    const auto mallctl = reinterpret_cast<Mallctl>(dlsym(RTLD_DEFAULT, "mallctl"));
    if (mallctl == nullptr) return false;
    for (const char* const option : {"opt.dirty_decay_ms", "opt.muzzy_decay_ms"}) {
        ssize_t milliseconds = 0;
        std::size_t bytes = sizeof milliseconds;
        if (mallctl(option, &milliseconds, &bytes, nullptr, 0) != 0 || milliseconds != -1) {
            return false;
        }
    }
    return true;
}

void identify_malloc(ReplayAnswer& answer) noexcept {
    file_of(dlsym(RTLD_DEFAULT, "malloc"), answer.malloc_file);
    answer.never_decays = never_decays();
}

/// Sets the pool up, so that it reads its variables now and reports invalid ones on stderr.
void set_up_pool() noexcept {
    MemoryPool& pool = get_global_memory_pool();
    pool.deallocate(pool.try_allocate(1));
}

}  // namespace

bool is_allocator_process(int count, const char* const* arguments) noexcept {
    return count == argument_count && std::strcmp(arguments[1], ReplayTask::argument) == 0;
}

int run_allocator_process(int, const char* const* arguments) noexcept {
    const ReplayTask task = {
        static_cast<Calls>(std::atoi(arguments[2])),
        static_cast<Touch>(std::atoi(arguments[3])),
        std::atoi(arguments[4]),
        std::atoi(arguments[5]),
    };
    static ReplayAnswer answer = {};
    identify_malloc(answer);
    PlanView plan;
    if (task.plan < 0) {
        if (task.calls == Calls::pool) set_up_pool();
    } else if (map_plan(task.plan, plan)) {
        perform(task, plan, answer);
    } else {
        std::snprintf(answer.problem, sizeof answer.problem, "the plan cannot be mapped");
    }
    answer_and_end(task.answer, answer);
}

}  // namespace tensorpool::command::replay
