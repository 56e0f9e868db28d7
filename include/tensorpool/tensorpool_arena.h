#ifndef TENSORPOOL_TENSORPOOL_ARENA_H
#define TENSORPOOL_TENSORPOOL_ARENA_H

/// @file
/// Arenas, scratches and contexts for programs in C (C99): memory that is released all at once.
/// Sizes are bytes unless a name says otherwise.
///
/// A function reports a failure by its return value, and `tensorpool_last_error` of
/// <tensorpool/tensorpool.h> returns the reason. No C++ exception leaves a function. A NULL handle
/// is a failure. A failed call changes nothing.

#include <stddef.h>
#include <stdint.h>

#include <tensorpool/tensorpool.h>
#include <tensorpool/export.hpp>

#ifdef __cplusplus
extern "C" {
#endif

/// An arena, which allocates from the front of one range of addresses and releases memory back to a
/// mark.
///
/// Any thread may allocate, set a mark and read statistics at any time, unless the arena belongs to
/// one thread. No other call on the arena may run during a release, a reset, a trim, a reserve or
/// its destruction.
typedef struct tensorpool_arena tensorpool_arena;
/// A scratch: memory of one thread that is allocated in scopes. Only the thread that it belongs to
/// may use it, except for its statistics.
typedef struct tensorpool_scratch tensorpool_scratch;
/// An arena and the scratch of each thread behind one interface, for the phases of a computation.
///
/// Functions that use the arena follow the rules for the threads of an arena, and those that use
/// the scratch the rules of a scratch.
typedef struct tensorpool_context tensorpool_context;

/* Arenas --------------------------------------------------------------------------------------- */

/// Which threads may allocate from an arena.
enum tensorpool_sharing {
    /// Any number of threads at once.
    tensorpool_sharing_any_thread = 0,
    /// Only the thread that allocates first. With checks, a call by another thread stops the
    /// program with a line on stderr.
    tensorpool_sharing_one_thread = 1
};
/// The kinds of an arena's events.
enum tensorpool_arena_event_kind {
    /// `bytes` more were committed. The initial capacity is not reported.
    tensorpool_arena_event_growth = 0,
    /// `bytes` were given back to the system.
    tensorpool_arena_event_give_back = 1,
    /// A request of `bytes` bytes failed.
    tensorpool_arena_event_refusal = 2
};

/// An event that an arena reports to `on_event`. It and its strings are valid during the call.
typedef struct tensorpool_arena_event {
    /// What happened, a tensorpool_arena_event_kind.
    int32_t kind;
    /// The arena's name.
    const char* arena;
    /// The bytes that the event is about.
    size_t bytes;
    /// The bytes in use at that time.
    size_t used;
    /// The bytes committed at that time.
    size_t capacity;
    /// For a refusal, the limit that was met, such as "max_capacity"; otherwise "".
    const char* limit;
} tensorpool_arena_event;

/// The options of an arena. Call `tensorpool_arena_options_init` first, which sets `struct_bytes`
/// and every default. Later versions add fields only at the end.
typedef struct tensorpool_arena_options {
    /// The size of the struct, sizeof(tensorpool_arena_options).
    size_t struct_bytes;
    /// The name shown in statistics and messages. It is copied; at most 47 bytes of it are kept.
    const char* name;
    /// The memory committed when the arena is made; it is not touched. Default: 8 MiB.
    size_t initial_capacity;
    /// The address space to reserve, which is also the limit of the capacity. 0, the default, means
    /// twice the total memory.
    size_t max_capacity;
    /// The limit for one request; a larger one fails at once. Default: 8 GiB.
    size_t max_allocation;
    /// The alignment of every block, a power of two. Default: 64.
    size_t alignment;
    /// The smallest growth.
    size_t growth_step;
    /// The smallest growth as a multiple of the present capacity.
    double growth_factor;
    /// The part of the available memory, from 0 to 1, up to which growth may go beyond the bare
    /// need.
    double growth_fraction;
    /// The capacity that stays committed after a release. Default: all of it.
    size_t retain;
    /// Which threads may allocate, a tensorpool_sharing.
    int32_t sharing;
    /// Whether (1) or not (0, the default) the arena keeps a register of objects.
    int32_t objects;
    /// How much each call is checked, a tensorpool_checks.
    int32_t checks;
    /// A function to call for each event; may be NULL. It gets `on_event_user` as its second
    /// argument. It runs on the thread whose call caused the event and must not use the arena.
    void (*on_event)(const tensorpool_arena_event* event, void* user);
    /// The second argument of `on_event`.
    void* on_event_user;
} tensorpool_arena_options;

/// Sets the first `struct_bytes` bytes of `options`, which must be
/// sizeof(tensorpool_arena_options), to the defaults, which the environment may set. Fails if
/// `options` is NULL or the size is not that of any version of this struct.
TENSORPOOL_API tensorpool_status tensorpool_arena_options_init(tensorpool_arena_options* options,
                                                               size_t struct_bytes);
/// Makes an arena with memory of its own; NULL means all defaults. Returns NULL for invalid
/// options, for a field that is set and that this library is too old to know, and if the address
/// space or the initial capacity is unavailable.
TENSORPOOL_API tensorpool_arena* tensorpool_arena_create(const tensorpool_arena_options* options);
/// Makes an arena over the caller's memory, which must outlive it; NULL options mean all defaults.
/// It never grows and never frees `buffer`. Returns NULL for invalid options, and for a NULL buffer
/// with bytes.
TENSORPOOL_API tensorpool_arena* tensorpool_arena_create_over(
    void* buffer, size_t bytes, const tensorpool_arena_options* options);
/// Makes an arena without memory, which measures how much a run needs; NULL means all defaults. Its
/// addresses are distinct and aligned and must not be touched. `tensorpool_arena_peak` is then what
/// the same run needs of a real arena. Returns NULL for invalid options.
TENSORPOOL_API tensorpool_arena* tensorpool_arena_create_measuring(
    const tensorpool_arena_options* options);
/// Destroys an arena and gives all memory of its own back, blocks in use included; NULL is ignored.
/// The arena of a context ends with the context and must not be passed.
TENSORPOOL_API void tensorpool_arena_destroy(tensorpool_arena* arena);

/// Allocates at least `bytes` bytes with the arena's alignment. The content is undefined. Returns
/// NULL for 0, which is no failure, and if the request cannot be met.
TENSORPOOL_API void* tensorpool_arena_allocate(tensorpool_arena* arena, size_t bytes);
/// Allocates at least `bytes` bytes, aligned to `alignment` and to the arena's own alignment. The
/// content is undefined. Returns NULL for 0, which is no failure, if the request cannot be met, and
/// unless `alignment` is a power of two.
TENSORPOOL_API void* tensorpool_arena_allocate_aligned(tensorpool_arena* arena, size_t bytes,
                                                       size_t alignment);

/// A position in an arena, to which the arena can be released. It is valid until a release goes
/// below it. It may be copied; its words are the library's.
typedef struct tensorpool_arena_mark {
    /// Words that only the library uses.
    uint64_t words[3];
} tensorpool_arena_mark;

/// Stores the present position in `*mark`.
TENSORPOOL_API tensorpool_status tensorpool_arena_set_mark(const tensorpool_arena* arena,
                                                           tensorpool_arena_mark* mark);
/// Releases everything that was allocated since the mark was set. A loop may release to the same
/// mark again and again. Fails for a mark of another arena, for a mark ahead of what is in use, and
/// for a stale mark: one below which the arena was released since.
TENSORPOOL_API tensorpool_status tensorpool_arena_release_to(tensorpool_arena* arena,
                                                             const tensorpool_arena_mark* mark);
/// Releases everything.
TENSORPOOL_API tensorpool_status tensorpool_arena_reset(tensorpool_arena* arena);
/// Commits and touches memory until the capacity is at least `bytes`. Fails if that exceeds the
/// reserved address space or is unavailable. Does nothing in a measuring arena.
TENSORPOOL_API tensorpool_status tensorpool_arena_reserve(tensorpool_arena* arena, size_t bytes);
/// Gives the committed memory above the blocks in use back to the system. Returns the number of
/// bytes given back.
TENSORPOOL_API size_t tensorpool_arena_trim(tensorpool_arena* arena);

/// Returns the bytes allocated and not released, including padding for alignment; 0 for NULL.
TENSORPOOL_API size_t tensorpool_arena_used(const tensorpool_arena* arena);
/// Returns the highest value that `tensorpool_arena_used` ever had; 0 for NULL.
TENSORPOOL_API size_t tensorpool_arena_peak(const tensorpool_arena* arena);
/// Returns the committed bytes; 0 for a measuring arena and for NULL.
TENSORPOOL_API size_t tensorpool_arena_capacity(const tensorpool_arena* arena);
/// Returns the bytes that can be allocated before the next growth, or before the buffer is full; 0
/// for NULL.
TENSORPOOL_API size_t tensorpool_arena_available(const tensorpool_arena* arena);

/// The description of an object in an arena's register.
typedef struct tensorpool_object {
    /// The size of the struct, sizeof(tensorpool_object), which the caller sets.
    size_t struct_bytes;
    /// The object's name; NULL means "".
    const char* name;
    /// What the object is, such as "tensor"; NULL means "".
    const char* kind;
    /// The type of its elements, such as "f32"; NULL means "".
    const char* element_type;
    /// The extent of each dimension, in elements; may be NULL if there is no dimension.
    const size_t* shape;
    /// The number of dimensions.
    size_t dimensions;
    /// The object's size, or the bytes that a view shows.
    size_t bytes;
} tensorpool_object;

/// Records an object at `data`, an address within a block of this arena. A release that ends the
/// block removes the object and its views. Returns the object's number, or 0 if it fails: the arena
/// keeps no register, or the object does not lie within the bytes in use.
TENSORPOOL_API uint64_t tensorpool_arena_record(tensorpool_arena* arena, const void* data,
                                                const tensorpool_object* object);
/// Records a view that begins `offset` bytes into the object or view `of`. Returns the view's
/// number, or 0 if it fails: the arena keeps no register, there is no such object, or the view
/// extends beyond it.
TENSORPOOL_API uint64_t tensorpool_arena_record_view(tensorpool_arena* arena, uint64_t of,
                                                     size_t offset, const tensorpool_object* view);
/// An object that an arena made.
typedef struct tensorpool_allocated_object {
    /// The object's number; 0 if the call failed.
    uint64_t id;
    /// The header: real memory, filled with zeros and aligned to 64, even if the arena only
    /// measures. NULL if no header was requested.
    void* header;
    /// The data, which must not be touched in a measuring arena. NULL for an object of 0 bytes.
    void* data;
} tensorpool_allocated_object;

/// Allocates `object->bytes` bytes and a header of `header_bytes` bytes, and records the object.
///
/// The header lies outside of the arena: in a measuring arena the objects are real and only their
/// data is measured. A release that ends the data removes the object and frees its header. The `id`
/// of the result is 0 if the call fails: the arena keeps no register, or the memory is unavailable.
TENSORPOOL_API tensorpool_allocated_object tensorpool_arena_allocate_object(
    tensorpool_arena* arena, const tensorpool_object* object, size_t header_bytes);
/// Makes a header of `header_bytes` bytes for a view that begins `offset` bytes into the object or
/// view `of`, and records the view. The `id` of the result is 0 if the call fails: the arena keeps
/// no register, there is no such object, the view extends beyond it, or the memory is unavailable.
TENSORPOOL_API tensorpool_allocated_object
tensorpool_arena_allocate_view(tensorpool_arena* arena, uint64_t of, size_t offset,
                               const tensorpool_object* view, size_t header_bytes);
/// Writes the recorded objects' counts and bytes, by kind and by element type, as one JSON object
/// into `buffer`, by the rules of snprintf. Returns the length of the whole text, or a negative
/// number if the call fails.
TENSORPOOL_API int tensorpool_arena_analyze_json(const tensorpool_arena* arena, char* buffer,
                                                 size_t buffer_bytes);

/* Statistics of arenas and scratches ----------------------------------------------------------- */

/// The statistics of an arena or a scratch. Later versions add fields only at the end.
typedef struct tensorpool_arena_statistics {
    /// The size of the struct, sizeof(tensorpool_arena_statistics), which the caller sets.
    size_t struct_bytes;
    /// The bytes allocated and not released, including padding for alignment.
    uint64_t used_bytes;
    /// The highest value of `used_bytes` so far.
    uint64_t peak_used_bytes;
    /// The committed bytes, or the size of the buffer.
    uint64_t capacity_bytes;
    /// The highest value of `capacity_bytes` so far.
    uint64_t peak_capacity_bytes;
    /// The reserved address space.
    uint64_t reserved_bytes;
    /// The limit of the capacity; 0 means no limit.
    uint64_t limit_bytes;
    /// How often memory was committed.
    uint64_t growths;
    /// The total bytes committed by growth.
    uint64_t grown_bytes;
    /// How often memory was given back to the system.
    uint64_t give_backs;
    /// The total bytes given back to the system.
    uint64_t given_back_bytes;
    /// The number of requests that failed.
    uint64_t refusals;
    /// The total number of allocations.
    uint64_t allocations;
    /// How often memory was released: resets, releases to a mark, ends of scopes.
    uint64_t releases;
} tensorpool_arena_statistics;

/// Fills in the first `statistics->struct_bytes` bytes of `statistics`. A field that this library
/// is too old to know becomes 0. Fails if `statistics` is NULL or its size is not that of any
/// version of this struct.
TENSORPOOL_API tensorpool_status tensorpool_arena_read_statistics(
    const tensorpool_arena* arena, tensorpool_arena_statistics* statistics);
/// Writes all statistics of an arena as one JSON object into `buffer`, by the rules of snprintf.
/// Returns the length of the whole text, or a negative number if the call fails.
TENSORPOOL_API int tensorpool_arena_report_json(const tensorpool_arena* arena, char* buffer,
                                                size_t buffer_bytes);

/* Scratches ------------------------------------------------------------------------------------ */

/// Returns the calling thread's scratch, which is made at its first use and ends with the thread.
/// Returns NULL if there is no memory for it.
TENSORPOOL_API tensorpool_scratch* tensorpool_scratch_local(void);
/// Makes a scratch over the caller's memory, which must outlive it. It never grows, and it belongs
/// to the thread that uses it. Returns NULL for a NULL buffer with bytes, and without memory.
TENSORPOOL_API tensorpool_scratch* tensorpool_scratch_create_over(void* buffer, size_t bytes);
/// Destroys a scratch that `tensorpool_scratch_create_over` made; NULL is ignored. No scope of it
/// may be open.
TENSORPOOL_API void tensorpool_scratch_destroy(tensorpool_scratch* scratch);

/// Allocates at least `bytes` bytes, aligned to 64. The content is undefined. Returns NULL for 0,
/// which is no failure, and if the request cannot be met.
TENSORPOOL_API void* tensorpool_scratch_allocate(tensorpool_scratch* scratch, size_t bytes);
/// Allocates at least `bytes` bytes, aligned to `alignment` and to 64. The content is undefined.
/// Returns NULL for 0, which is no failure, if the request cannot be met, and unless `alignment` is
/// a power of two.
TENSORPOOL_API void* tensorpool_scratch_allocate_aligned(tensorpool_scratch* scratch, size_t bytes,
                                                         size_t alignment);
/// Allocates `rows * columns` elements of `element_bytes` bytes, row after row without gaps.
/// Returns NULL if there are none, which is no failure, if the product overflows, and if the
/// request cannot be met.
TENSORPOOL_API void* tensorpool_scratch_allocate_matrix_pack(tensorpool_scratch* scratch,
                                                             size_t rows, size_t columns,
                                                             size_t element_bytes);
/// Allocates `rows * columns` elements of `element_bytes` bytes whose rows begin at multiples of 64
/// bytes, and stores the distance between two rows in `*row_bytes`. Returns NULL if there are none,
/// which is no failure, if the product overflows, and if the request cannot be met.
TENSORPOOL_API void* tensorpool_scratch_allocate_padded_matrix(tensorpool_scratch* scratch,
                                                               size_t rows, size_t columns,
                                                               size_t element_bytes,
                                                               size_t* row_bytes);

/// A scope of a scratch, in the caller's memory. Do not copy it between begin and end.
typedef struct tensorpool_scratch_scope {
    /// Words that only the library uses.
    uint64_t words[12];
} tensorpool_scratch_scope;

/// Begins a scope of `scratch` in `*scope`. `name` may be NULL, or the name of an operator, whose
/// peak is then remembered and reserved the next time. Scopes nest.
TENSORPOOL_API tensorpool_status tensorpool_scratch_begin(tensorpool_scratch* scratch,
                                                          tensorpool_scratch_scope* scope,
                                                          const char* name);
/// Ends a scope and releases what was allocated since it began; NULL is ignored. A scope that ends
/// before a scope that began inside it stops the program with a line on stderr.
TENSORPOOL_API void tensorpool_scratch_end(tensorpool_scratch_scope* scope);

/// Releases everything that was allocated outside of any scope. Fails inside a scope.
TENSORPOOL_API tensorpool_status tensorpool_scratch_reset(tensorpool_scratch* scratch);
/// Makes room for `bytes` more bytes, so that they can be allocated without growth.
TENSORPOOL_API tensorpool_status tensorpool_scratch_reserve(tensorpool_scratch* scratch,
                                                            size_t bytes);
/// Gives unused memory back. Returns the number of bytes given back.
TENSORPOOL_API size_t tensorpool_scratch_trim(tensorpool_scratch* scratch);
/// Returns the bytes allocated and not released; 0 for NULL.
TENSORPOOL_API size_t tensorpool_scratch_used(const tensorpool_scratch* scratch);
/// Returns the highest value that `tensorpool_scratch_used` ever had; 0 for NULL.
TENSORPOOL_API size_t tensorpool_scratch_peak(const tensorpool_scratch* scratch);
/// Fills in the first `statistics->struct_bytes` bytes of `statistics`. Any thread may call it.
/// Fails if `statistics` is NULL or its size is not that of any version of the struct.
TENSORPOOL_API tensorpool_status tensorpool_scratch_read_statistics(
    const tensorpool_scratch* scratch, tensorpool_arena_statistics* statistics);

/* Contexts ------------------------------------------------------------------------------------- */

/// Makes a context whose arena has these options; NULL means all defaults. Returns NULL for invalid
/// options, and if there is no memory.
TENSORPOOL_API tensorpool_context* tensorpool_context_create(
    const tensorpool_arena_options* options);
/// Makes a context whose arena has these options, and that takes requests of up to `small_bytes`
/// bytes to `tensorpool_context_allocate` from `pool`, which must outlive the context. NULL means
/// all defaults and the global pool. The other contexts take up to 64 KiB from the global pool.
/// Returns NULL for invalid options, and if there is no memory.
TENSORPOOL_API tensorpool_context* tensorpool_context_create_with_pool(
    const tensorpool_arena_options* options, tensorpool_pool* pool, size_t small_bytes);
/// Makes a context whose arena lies in the caller's memory, which must outlive the context. The
/// arena never grows, and its blocks are aligned to `alignment`, a power of two. Returns NULL for
/// any other alignment, for a NULL buffer with bytes, and if there is no memory.
TENSORPOOL_API tensorpool_context* tensorpool_context_create_over(void* buffer, size_t bytes,
                                                                  size_t alignment);
/// Makes a context whose arena has these options and only measures: addresses of
/// `tensorpool_context_alloc` must not be touched. NULL means all defaults. The scratch is real.
/// Returns NULL for invalid options.
TENSORPOOL_API tensorpool_context* tensorpool_context_create_measuring(
    const tensorpool_arena_options* options);
/// Destroys a context and gives its arena's memory back, blocks in use included; NULL is ignored.
TENSORPOOL_API void tensorpool_context_destroy(tensorpool_context* context);

/// Allocates at least `bytes` bytes: a small block from the pool, which the caller frees with
/// `tensorpool_context_deallocate`, a larger one from the arena, which lives until a release.
/// Returns NULL for 0, which is no failure, and if the request cannot be met.
TENSORPOOL_API void* tensorpool_context_allocate(tensorpool_context* context, size_t bytes);
/// Frees a block of the pool that `tensorpool_context_allocate` returned for this size. Does
/// nothing for a larger block and for NULL. Any thread.
TENSORPOOL_API void tensorpool_context_deallocate(tensorpool_context* context, void* block,
                                                  size_t bytes);
/// Writes the statistics of the context's pool, its arena and the calling thread's scratch as one
/// JSON object into `buffer`, by the rules of snprintf. Returns the length of the whole text, or a
/// negative number if the call fails.
TENSORPOOL_API int tensorpool_context_report_json(const tensorpool_context* context, char* buffer,
                                                  size_t buffer_bytes);
/// Allocates at least `bytes` bytes from the arena. Returns NULL for 0, which is no failure, and if
/// the request cannot be met.
TENSORPOOL_API void* tensorpool_context_alloc(tensorpool_context* context, size_t bytes);
/// Allocates at least `bytes` bytes of the calling thread's scratch. Returns NULL for 0, which is
/// no failure, and if the request cannot be met.
TENSORPOOL_API void* tensorpool_context_scratch_alloc(tensorpool_context* context, size_t bytes);
/// Allocates scratch for `rows * columns` elements of `element_bytes` bytes, row after row without
/// gaps. Returns NULL if there are none, which is no failure, if the product overflows, and if the
/// request cannot be met.
TENSORPOOL_API void* tensorpool_context_scratch_alloc_matrix_pack(tensorpool_context* context,
                                                                  size_t rows, size_t columns,
                                                                  size_t element_bytes);
/// Releases all scratch of the calling thread. Fails inside an open scope.
TENSORPOOL_API tensorpool_status tensorpool_context_scratch_reset(tensorpool_context* context);
/// Returns the arena's present position in bytes, for `tensorpool_context_release_to`; 0 for NULL.
TENSORPOOL_API size_t tensorpool_context_mark(const tensorpool_context* context);
/// Releases what the arena allocated since `tensorpool_context_mark` returned this value. Fails if
/// the mark is ahead of what is in use or not a multiple of the alignment; other stale marks cannot
/// be detected.
TENSORPOOL_API tensorpool_status tensorpool_context_release_to(tensorpool_context* context,
                                                               size_t mark);
/// Releases everything that the arena allocated. Scratch is unaffected.
TENSORPOOL_API tensorpool_status tensorpool_context_reset(tensorpool_context* context);
/// Remembers the present position of this thread's scratch, in place of one remembered before.
TENSORPOOL_API tensorpool_status tensorpool_context_save_scratch(tensorpool_context* context);
/// Releases what the scratch allocated since `tensorpool_context_save_scratch`. Fails if no
/// position is remembered, on another thread, and in another scope.
TENSORPOOL_API tensorpool_status tensorpool_context_restore_scratch(tensorpool_context* context);
/// Makes the context take its scratch from the caller's buffer from now on, which must outlive the
/// context; 0 bytes restore each thread's own scratch. Fails while the present buffer has bytes in
/// use or an open scope.
TENSORPOOL_API tensorpool_status tensorpool_context_use_scratch(tensorpool_context* context,
                                                                void* buffer, size_t bytes);
/// Returns the context's arena, for all functions of arenas but `tensorpool_arena_destroy`; NULL
/// for NULL. It is valid as long as the context.
TENSORPOOL_API tensorpool_arena* tensorpool_context_arena(tensorpool_context* context);
/// Returns the scratch that the context uses on the calling thread, for all functions of scratches
/// but `tensorpool_scratch_destroy`. Returns NULL for NULL and if there is no memory for it.
TENSORPOOL_API tensorpool_scratch* tensorpool_context_scratch(tensorpool_context* context);

#ifdef __cplusplus
}
#endif

#endif
