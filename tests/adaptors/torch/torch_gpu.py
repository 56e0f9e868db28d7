"""Checks PyTorch's CUDA tensors with memory from tensorpool: torch_gpu.py LIBRARY PART, where LIBRARY
is the path of libtensorpool.so. tools/gpu_check runs each part. Exits with 77, after the reason, if
PyTorch, a card or a function is missing."""

import ctypes
import subprocess
import sys
import time


def skip(reason):
    print(reason)
    sys.exit(77)


try:
    import torch
except ImportError:
    skip("PyTorch is not installed")

MIB = 1 << 20
FUNCTIONS = {"set_record_stream_fn": "tensorpool_torch_record_stream",
             "set_reset_fn": "tensorpool_torch_reset",
             "set_memory_fraction_fn": "tensorpool_torch_set_memory_fraction",
             "set_begin_allocate_to_pool": "tensorpool_torch_begin_allocate_to_pool",
             "set_end_allocate_to_pool_fn": "tensorpool_torch_end_allocate_to_pool",
             "set_release_pool": "tensorpool_torch_release_pool"}


def use(library):
    """Makes tensorpool the allocator of CUDA tensors."""
    loaded = ctypes.CDLL(library)
    allocator = torch.cuda.memory.CUDAPluggableAllocator(
        library, "tensorpool_torch_malloc", "tensorpool_torch_free")
    functions = allocator.allocator()
    for setter, name in FUNCTIONS.items():
        if not hasattr(functions, setter):
            skip(f"PyTorch {torch.__version__} has no {setter}")
        getattr(functions, setter)(ctypes.cast(getattr(loaded, name), ctypes.c_void_p).value)
    torch.cuda.memory.change_current_allocator(allocator)


def held():
    """Returns the MiB of the card that are in use, by all processes."""
    free, total = torch.cuda.mem_get_info()
    return (total - free) / MIB


def train_steps(count):
    """Trains a small network and returns the last loss, the steps a second and the MiB held."""
    torch.manual_seed(1)
    before = held()
    layers = [torch.nn.Linear(2048, 2048) for _ in range(8)]
    model = torch.nn.Sequential(*(part for layer in layers for part in (layer, torch.nn.GELU()))).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

    def step(number):
        # Batches of several sizes, so that the allocators have more to do than to repeat.
        batch = torch.randn(512 + 128 * (number % 5), 2048, device="cuda")
        loss = (model(batch) - batch).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss

    for number in range(10):
        step(number)
    torch.cuda.synchronize()
    start = time.monotonic()
    for number in range(count):
        loss = step(number)
    torch.cuda.synchronize()
    # Neither allocator gives memory back before it is scarce, so what is held is the peak.
    return loss.item(), count / (time.monotonic() - start), held() - before


def train(library):
    """Compares PyTorch's own allocator with ours, each in a process of its own."""
    results = {}
    for name, part in (("native", "train_native"), ("tensorpool", "train_ours")):
        done = subprocess.run([sys.executable, "-B", __file__, library, part], text=True,
                              stdout=subprocess.PIPE)
        if done.returncode == 77:
            skip(done.stdout.strip())
        done.check_returncode()
        results[name] = [float(value) for value in done.stdout.split()]
    for name, (loss, speed, peak) in results.items():
        print(f"{name}: {speed:.1f} steps a second, {peak:.0f} MiB, loss {loss:.6f}")
    native, ours = results["native"][0], results["tensorpool"][0]
    assert abs(native - ours) <= 1e-3 * abs(native), f"losses {native} and {ours}"


def train_native(_):
    print(*train_steps(200))


def train_ours(library):
    use(library)
    print(*train_steps(200))


def out_of_memory(library):
    use(library)
    _, total = torch.cuda.mem_get_info()
    try:
        torch.empty(2 * total, dtype=torch.uint8, device="cuda")
    except RuntimeError as error:
        assert "tensorpool" in str(error) and "cuda:0: allocate" in str(error), error
    else:
        raise AssertionError("twice the memory of the card was allocated")
    assert torch.ones(1000, device="cuda").sum().item() == 1000


def graphs(library):
    """Captures three graphs with one pool, replays them in turns and frees them."""
    use(library)
    source = torch.ones(MIB, device="cuda")
    captured, pool = [], None
    for number in (1, 2, 3):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            between = source * number
            result = between + number
        del between
        pool = graph.pool()
        captured.append((graph, result))
    outside = torch.full((MIB,), 7.0, device="cuda")
    for value in (1.0, 2.0):
        source.fill_(value)
        for graph, _ in captured:
            graph.replay()
        for number, (_, result) in enumerate(captured, 1):
            assert bool((result == value * number + number).all()), (value, number)
    assert bool((outside == 7).all())
    del graph, result
    captured.clear()
    torch.cuda.synchronize()
    assert torch.ones(64 * MIB, device="cuda").sum().item() == 64 * MIB


def record_stream(library):
    """Frees tensors that another stream, which has fallen behind, still reads."""
    use(library)
    side = torch.cuda.Stream()
    busy = torch.ones(4096, 4096, device="cuda")
    results = []
    for number in range(50):
        tensor = torch.full((4 * MIB,), float(number), device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            busy @ busy
            results.append(tensor.max())
        tensor.record_stream(side)
        del tensor
        torch.full((4 * MIB,), -1.0, device="cuda")
    torch.cuda.synchronize()
    assert [result.item() for result in results] == [float(number) for number in range(50)]


def pinned_loader(library):
    """Copies batches from pinned memory, which a loader's thread fills, without waiting."""
    use(library)
    data = torch.arange(4096 * 1024, dtype=torch.float32).view(4096, 1024)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data), batch_size=64,
                                         pin_memory=True, num_workers=2)
    batches = 0
    for index, (batch,) in enumerate(loader):
        assert batch.is_pinned()
        on_card = batch.to("cuda", non_blocking=True)
        assert torch.equal(on_card.cpu(), data[index * 64:(index + 1) * 64]), index
        batches += 1
    assert batches == 64


PARTS = {part.__name__: part for part in (train, train_native, train_ours, out_of_memory, graphs,
                                          record_stream, pinned_loader)}


def main():
    if len(sys.argv) != 3 or sys.argv[2] not in PARTS:
        sys.exit(f"usage: torch_gpu.py LIBRARY {'|'.join(PARTS)}")
    if not torch.cuda.is_available():
        skip("PyTorch finds no card")
    PARTS[sys.argv[2]](sys.argv[1])


if __name__ == "__main__":
    main()
