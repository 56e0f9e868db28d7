"""Reads a snapshot as the viewers of PyTorch do, and prints what they would, as JSON. Any check of
theirs that fails ends it. Python's standard library alone."""

import json
import pickle
import pickletools
import sys

# What torch/utils/viz/MemoryViz.js understands of a pickle.
KNOWN = {
    'APPEND', 'APPENDS', 'BINFLOAT', 'BINGET', 'BININT', 'BININT1', 'BININT2', 'BINPUT',
    'BINUNICODE', 'DICT', 'EMPTY_DICT', 'EMPTY_LIST', 'EMPTY_TUPLE', 'FRAME', 'LIST', 'LONG1',
    'LONG_BINGET', 'LONG_BINPUT', 'MARK', 'MEMOIZE', 'NEWFALSE', 'NEWTRUE', 'NONE', 'PROTO',
    'SETITEM', 'SETITEMS', 'SHORT_BINUNICODE', 'STOP', 'TUPLE', 'TUPLE1', 'TUPLE2', 'TUPLE3'}


def check_frames(frames):
    for frame in frames:
        assert set(frame) == {'filename', 'line', 'name'}, frame
        assert isinstance(frame['line'], int)


def check_segment(segment):
    """The sums that _memory_viz.py's segsum asserts; blocks tile the segment."""
    address = segment['address']
    allocated = free_internal = free_external = 0
    for block in segment['blocks']:
        assert block['address'] == address, (block, address)
        assert block['size'] > 0
        assert block['state'] in ('active_allocated', 'active_pending_free', 'inactive')
        check_frames(block['frames'])
        if block['state'] == 'active_allocated':
            assert 0 <= block['requested_size'] <= block['size']
            allocated += block['requested_size']
            free_internal += block['size'] - block['requested_size']
        else:
            free_external += block['size']
        address += block['size']
    assert address == segment['address'] + segment['total_size']
    assert free_internal + free_external + allocated == segment['total_size']
    assert segment['requested_size'] == allocated
    assert segment['allocated_size'] == allocated + free_internal
    for key in ('device', 'stream', 'segment_type', 'segment_pool_id', 'is_expandable',
                'active_size', 'frames'):
        assert key in segment, key
    return allocated, free_internal, free_external


def segment_of(segments, device, address):
    for segment in segments:
        begin = segment['address']
        if segment['device'] == device and begin <= address < begin + segment['total_size']:
            return segment
    return None


def work_back(snapshot, device):
    """As MemoryViz.js's simulate_memory: from the blocks at the moment to before the history. What
    was there then, and how many allocations are of no block, as where blocks were cut."""
    unmatched = 0
    blocks = {block['address']: False for segment in snapshot['segments']
              if segment['device'] == device for block in segment['blocks']
              if block['state'] == 'active_allocated'}
    for event in reversed(snapshot['device_traces'][device]):
        address = event['addr']
        assert segment_of(snapshot['segments'], device, address) is not None, event
        if event['action'] == 'free_completed':
            blocks[address] = True
        elif event['action'] == 'free_requested':
            assert blocks[address]
            blocks[address] = False
        elif event['action'] == 'alloc':
            unmatched += blocks.pop(address, None) is None
    return {'blocks': sorted(blocks), 'unmatched': unmatched}


def main(path):
    with open(path, 'rb') as file:
        data = file.read()
    assert data[-1:] == pickle.STOP
    unknown = {op.name for op, _, _ in pickletools.genops(data)} - KNOWN
    assert not unknown, unknown
    # As trace_plot pads it.
    snapshot = pickle.loads(data + b'\x00' * 3)
    assert set(snapshot) == {
        'segments', 'device_traces', 'allocator_settings', 'external_annotations'}
    sums = [check_segment(segment) for segment in snapshot['segments']]
    for trace in snapshot['device_traces']:
        for event in trace:
            assert event['action'] in ('alloc', 'free_requested', 'free_completed')
            assert {'addr', 'size', 'stream', 'time_us', 'frames'} <= set(event)
            check_frames(event['frames'])
    print(json.dumps({
        'allocated': sum(allocated for allocated, _, _ in sums),
        'internal': sum(internal for _, internal, _ in sums),
        'external': sum(external for _, _, external in sums),
        'segments': snapshot['segments'],
        'traces': snapshot['device_traces'],
        'before': [work_back(snapshot, device)
                   for device in range(len(snapshot['device_traces']))]}))


main(sys.argv[1])
