#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a trace of framehost with Perfetto's own messages, and says what is in it and what is wrong with it.

  trace.py FILE          a table of stages, waits, pools and marks; exit status 1 where something is wrong
  trace.py --json FILE   the same for programs

Needs PyPI's `perfetto` and `protobuf`. What is checked: every field is one of the schema's; the first packet begins the names and all others use
them; a track is described before it is used, once; times of a track rise; slices lie on threads, nest, and end; numbers lie on counters; a flow
has two ends, forward in time.
"""
import collections
import json
import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket, TrackEvent


def packets(data):
    """Each packet and the bytes behind the last whole one: a file is `Trace.packet` again and again."""
    found, at = [], 0
    while at < len(data):
        begin = at
        if data[at] != 0x0a:
            raise SystemExit(f'byte {at} begins no packet')
        at += 1
        length = shift = 0
        while at < len(data):
            byte = data[at]
            at += 1
            length |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                break
        else:
            return found, len(data) - begin
        if at + length > len(data):
            return found, len(data) - begin
        found.append(TracePacket.FromString(data[at:at + length]))
        at += length
    return found, 0


def unknown(message, path):
    """Fields that the schema does not have."""
    for field in UnknownFieldSet(message):
        yield f'{path}: field {field.field_number} is not in the schema'
    for descriptor, value in message.ListFields():
        if descriptor.type != descriptor.TYPE_MESSAGE:
            continue
        for one in [value] if not isinstance(value, collections.abc.Sequence) else value:
            yield from unknown(one, f'{path}.{descriptor.name}')


class Trace:
    def __init__(self, data):
        self.faults = []
        self.size = len(data)
        self.packets, self.cut = packets(data)
        self.titles, self.threads, self.counters, self.lanes = {}, set(), set(), {}
        self.names, self.categories, self.annotations = {}, {}, {}
        self.slices, self.marks, self.levels = [], [], collections.defaultdict(list)
        self.open, self.last = collections.defaultdict(list), {}
        self.flows = collections.defaultdict(list)
        self.first_time, self.last_time = None, 0
        for index, packet in enumerate(self.packets):
            self.faults += unknown(packet, f'packet {index}')
            self.read(index, packet)
        # In the file the ends of a flow stand as their threads' notes were collected; readers order them by time.
        for ends in self.flows.values():
            ends.sort()

    def fault(self, text):
        if len(self.faults) < 50:
            self.faults.append(text)

    def read(self, index, packet):
        if packet.trusted_packet_sequence_id != 1:
            self.fault(f'packet {index} is of no sequence')
        first = index == 0
        if packet.sequence_flags != (TracePacket.SEQ_INCREMENTAL_STATE_CLEARED if first else TracePacket.SEQ_NEEDS_INCREMENTAL_STATE):
            self.fault(f'packet {index} has the flags {packet.sequence_flags}')
        if first:
            clocks = {clock.clock_id: clock.timestamp for clock in packet.clock_snapshot.clocks}
            if set(clocks) != {1, 3, 6} or packet.clock_snapshot.primary_trace_clock != 3:
                self.fault(f'the clocks are {clocks}')
            if packet.trace_packet_defaults.timestamp_clock_id != 3:
                self.fault('the default clock is not the monotonic one')
        for table, entries in ((self.names, packet.interned_data.event_names), (self.categories, packet.interned_data.event_categories),
                               (self.annotations, packet.interned_data.debug_annotation_names)):
            for entry in entries:
                if not entry.iid or entry.iid in table:
                    self.fault(f'packet {index} tells of name {entry.iid} again')
                table[entry.iid] = entry.name
        if packet.HasField('track_descriptor'):
            self.describe(packet.track_descriptor)
        if packet.HasField('track_event'):
            self.event(index, packet.timestamp, packet.track_event)

    def describe(self, track):
        if track.uuid in self.titles or not track.uuid:
            self.fault(f'track {track.uuid} is described again')
        if track.HasField('process'):
            self.titles[track.uuid] = track.process.process_name
            self.pid = track.process.pid
            return
        if track.parent_uuid not in self.titles:
            self.fault(f'track {track.uuid} has no parent')
        if track.HasField('thread'):
            self.threads.add(track.uuid)
            self.lanes[track.uuid] = track.thread.tid
            if track.thread.pid != self.pid or track.thread.tid <= 0:
                self.fault(f'thread {track.thread.thread_name} has the number {track.thread.tid} in process {track.thread.pid}')
        if track.HasField('counter'):
            self.counters.add(track.uuid)
        self.titles[track.uuid] = track.thread.thread_name or track.name

    def event(self, index, time, event):
        track = event.track_uuid
        title = self.titles.get(track)
        if title is None:
            return self.fault(f'packet {index} is on track {track}, which nobody described')
        if title != 'events' and time < self.last.get(track, 0):
            self.fault(f'{title}: time goes back at packet {index}')
        self.last[track] = time
        self.first_time = time if self.first_time is None else min(self.first_time, time)
        self.last_time = max(self.last_time, time)
        said = {self.annotations.get(one.name_iid): one.int_value if one.HasField('int_value') else one.string_value
                for one in event.debug_annotations}
        if None in said:
            self.fault(f'packet {index} has an annotation without a name')
        for flow in event.flow_ids:
            self.flows[flow].append(time)
        if event.type in (TrackEvent.TYPE_SLICE_BEGIN, TrackEvent.TYPE_INSTANT):
            name = self.names.get(event.name_iid)
            if name is None or any(one not in self.categories for one in event.category_iids) or not event.category_iids:
                self.fault(f'packet {index} has a name or category that nobody told')
            entry = {'name': name, 'category': self.categories.get(event.category_iids[0]) if event.category_iids else None, 'track': title,
                     'time': time, 'flows': list(event.flow_ids), **said}
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            if track not in self.threads:
                self.fault(f'{title}: a slice, and no thread')
            self.slices.append(entry | {'depth': len(self.open[track]), 'end': None})
            self.open[track].append(len(self.slices) - 1)
        elif event.type == TrackEvent.TYPE_SLICE_END:
            if not self.open[track]:
                return self.fault(f'{title}: an end without a begin at packet {index}')
            self.slices[self.open[track].pop()]['end'] = time
        elif event.type == TrackEvent.TYPE_INSTANT:
            self.marks.append(entry)
        elif event.type == TrackEvent.TYPE_COUNTER:
            if track not in self.counters:
                self.fault(f'{title}: a number, and no counter')
            self.levels[title].append(event.counter_value)
        else:
            self.fault(f'packet {index} is of type {event.type}')

    def summary(self):
        stages = {}
        for name in sorted({one['name'] for one in self.slices}):
            own = [one for one in self.slices if one['name'] == name]
            times = sorted((one['end'] - one['time']) / 1000 for one in own if one['end'] is not None)
            stages[name] = {
                'category': own[0]['category'], 'slices': len(own), 'frames': sum('frame' in one for one in own),
                'lanes': sorted({one['track'] for one in own}), 'depths': sorted({one['depth'] for one in own}),
                'p50Us': round(times[len(times) // 2], 1) if times else None,
                'p99Us': round(times[len(times) * 99 // 100], 1) if times else None,
                'open': sum(one['end'] is None for one in own),
                'flows': sum(len(one['flows']) for one in own)}
        return {
            'bytes': self.size, 'packets': len(self.packets), 'cutBytes': self.cut, 'seconds': (self.last_time - (self.first_time or 0)) / 1e9,
            'faults': self.faults, 'lanes': sorted(self.titles[one] for one in self.threads), 'stages': stages,
            'flows': len(self.flows), 'flowsWithOneEnd': sum(len(ends) == 1 for ends in self.flows.values()),
            'counters': {name: {'least': min(values), 'most': max(values), 'last': values[-1], 'changes': len(values)}
                         for name, values in sorted(self.levels.items())},
            'marks': dict(collections.Counter(one['name'] for one in self.marks).most_common())}


def show(summary):
    print(f"{summary['bytes']} bytes, {summary['packets']} packets, {summary['seconds']:.2f} s, {len(summary['lanes'])} threads: "
          f"{', '.join(summary['lanes'])}")
    print(f"{summary['flows']} flows, {summary['flowsWithOneEnd']} of them with one end\n")
    print(f"{'slice':30} {'count':>8} {'frames':>8} {'p50 µs':>10} {'p99 µs':>10}  on")
    for name, one in summary['stages'].items():
        print(f"{name:30} {one['slices']:8} {one['frames']:8} {one['p50Us'] or 0:10} {one['p99Us'] or 0:10}  {', '.join(one['lanes'])}")
    print(f"\n{'counter':30} {'changes':>8} {'least':>8} {'most':>10} {'last':>10}")
    for name, one in summary['counters'].items():
        print(f"{name:30} {one['changes']:8} {one['least']:8} {one['most']:10} {one['last']:10}")
    print(f"\n{'mark':30} {'count':>8}")
    for name, count in summary['marks'].items():
        print(f'{name:30} {count:8}')
    for fault in summary['faults']:
        print(f'fault: {fault}')


if __name__ == '__main__':
    path = sys.argv[-1]
    with open(path, 'rb') as file:
        summary = Trace(file.read()).summary()
    if '--json' in sys.argv:
        print(json.dumps(summary))
    else:
        show(summary)
    sys.exit(1 if summary['faults'] else 0)
