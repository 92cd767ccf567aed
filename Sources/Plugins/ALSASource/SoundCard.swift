// SPDX-License-Identifier: Apache-2.0

/// A card that is open for capture. ``CaptureDevice`` is one of ALSA.
///
/// Non-blocking: only ``wait(milliseconds:)`` waits. One thread at a time uses it.
protocol SoundCard: AnyObject {
    var name: String { get }
    var format: CardFormat { get }
    /// As people call it: `HDA Intel PCH, ALC257 Analog`.
    var title: String { get }
    /// ``name`` by the card's id, as ``StableName`` has it.
    var stableName: String { get }

    /// Begins to capture, from the beginning: at first, and after an overrun.
    func start() throws(CardFault)

    /// Until a period is there or something is wrong, but not longer.
    ///
    /// - Returns: False where the time is over.
    func wait(milliseconds: Int32) throws(CardFault) -> Bool

    /// Stamp and count of one moment. A state of overrun or loss is a fault here too.
    func look() throws(CardFault) -> CardStatus

    /// Reads at most `frames` frames.
    ///
    /// - Returns: How many there were; 0 where none is there yet.
    func read(_ bytes: UnsafeMutableRawPointer, frames: Int) throws(CardFault) -> Int

    /// Wakes a card that the system has suspended.
    ///
    /// - Returns: False where it is not awake yet.
    func resume() throws(CardFault) -> Bool

    /// Ends the capture without waiting for what the card still has.
    func close()
}

/// What one look at a card says.
struct CardStatus {
    /// Of the card's clock when it last counted, nanoseconds of CLOCK_MONOTONIC; 0 where it does not say.
    var stamp: Int64
    /// Frames that it has captured until then and that nobody has read.
    var available: Int
}
