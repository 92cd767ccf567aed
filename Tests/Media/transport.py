# SPDX-License-Identifier: Apache-2.0
"""MPEG transport streams with other times: shifted, with a hole, with one wrong time (ISO/IEC 13818-1, 2.4.3.4 and 2.4.3.6)."""

PACKET = 188
WRAP = 1 << 33


def _time(bytes_, at):
    return (bytes_[at] >> 1 & 7) << 30 | bytes_[at + 1] << 22 | (bytes_[at + 2] >> 1) << 15 | bytes_[at + 3] << 7 | bytes_[at + 4] >> 1


def _put(bytes_, at, value):
    value %= WRAP
    bytes_[at] = bytes_[at] & 0xF1 | value >> 29 & 0x0E
    bytes_[at + 1] = value >> 22 & 0xFF
    bytes_[at + 2] = value >> 14 & 0xFE | 1
    bytes_[at + 3] = value >> 7 & 0xFF
    bytes_[at + 4] = value << 1 & 0xFE | 1


class Stream:
    """The packets of a stream, to be changed in place."""

    def __init__(self, data):
        self.data = bytearray(data)
        assert len(data) % PACKET == 0 and all(data[at] == 0x47 for at in range(0, len(data), PACKET))

    def _packets(self):
        for at in range(0, len(self.data), PACKET):
            begin = at + 4
            has_adaptation, has_payload = self.data[at + 3] & 0x20, self.data[at + 3] & 0x10
            if has_adaptation:
                begin += 1 + self.data[at + 4]
            starts = self.data[at + 1] & 0x40 and has_payload and self.data[begin:begin + 3] == b"\0\0\1" and self.data[begin + 3] >= 0xBD
            yield at, (self.data[at + 1] & 0x1F) << 8 | self.data[at + 2], begin, starts

    def pes(self):
        """Of each packet of an elementary stream: (place of its first transport packet, PID, is it of video, where PTS and DTS stand, PTS)."""
        found = []
        for at, pid, begin, starts in self._packets():
            if starts and self.data[begin + 7] & 0x80:
                places = [begin + 9] + ([begin + 14] if self.data[begin + 7] & 0x40 else [])
                found.append((at, pid, 0xE0 <= self.data[begin + 3] <= 0xEF, places, _time(self.data, places[0])))
        return found

    def shift(self, ticks):
        """All times, the clock reference too, in 90 kHz."""
        for at, _, _, _ in self._packets():
            if self.data[at + 3] & 0x20 and self.data[at + 4] >= 7 and self.data[at + 5] & 0x10:
                base = (int.from_bytes(self.data[at + 6:at + 10], "big") << 1 | self.data[at + 10] >> 7) + ticks
                base %= WRAP
                self.data[at + 6:at + 10] = (base >> 1).to_bytes(4, "big")
                self.data[at + 10] = self.data[at + 10] & 0x7F | (base & 1) << 7
        for _, _, _, places, _ in self.pes():
            for place in places:
                _put(self.data, place, _time(self.data, place) + ticks)

    def mistake(self, is_video, number, ticks):
        """Moves the times of one packet alone: the so-many-th of the pictures or of the sound. Returns its PTS before."""
        own = [one for one in self.pes() if one[2] == is_video]
        _, _, _, places, time = own[number]
        for place in places:
            _put(self.data, place, _time(self.data, place) + ticks)
        return time

    def hole(self, begin, end, video=True, sound=True):
        """Takes away the elementary streams' packets from place `begin` to `end` of the pictures' count (a hole of both lies at the same bytes)."""
        pictures = [one[0] for one in self.pes() if one[2]]
        low, high = pictures[begin], pictures[end]
        kinds = {pid: is_video for _, pid, is_video, _, _ in self.pes()}
        kept = bytearray()
        for at, pid, _, _ in self._packets():
            gone = low <= at < high and pid in kinds and (video if kinds[pid] else sound)
            if not gone:
                kept += self.data[at:at + PACKET]
        self.data = kept

    def length(self):
        """From the first time to the last, in 90 kHz, of all tracks."""
        times = [one[4] for one in self.pes()]
        return max(times) - min(times), min(times)
