#pragma once

/// @file
/// What `process_lives` can do. Each function returns the exit code of the process, unless it ends
/// it.

namespace processes {

/// Forks `count` times while threads allocate. Each child allocates and frees, every eighth also in
/// a thread of its own.
int fork_at_work(unsigned count);
/// Lets three threads make the first allocations of the process while the main thread forks. `seed`
/// determines when.
int fork_at_first_allocation(unsigned seed);
/// Ends while threads allocate, as `how` says: return, exit, quick_exit, _exit or pthread_exit.
int end_at_work(const char* how, unsigned seed);
/// Runs `count` threads that all hold blocks, twice, and checks that memory and statistics return
/// to what they were.
int run_many_threads(unsigned count);
/// Allocates in threads until it is killed. Prints a line once it has a segment.
int run_until_killed();
/// Reads the statistics of a process until it has ended, and asks it to trim.
int read_until_ended(unsigned process);
/// Allocates while the clocks jump, `rounds` times through a list of jumps, and checks after each
/// that free memory returns, that blocks are guarded and that the timeline goes on.
int run_with_jumping_clock(unsigned rounds);
/// Makes each kind of call in a thread with a stack of 16 KiB. Misuses are made in children.
int run_small_stacks();
/// Prints how many bytes of the stack each kind of call takes, from the thread's first frame on.
int measure_stacks();

}  // namespace processes
