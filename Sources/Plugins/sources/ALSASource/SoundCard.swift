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

    /// Starts to capture: at first, and again after an overrun.
    func start() throws(CardFault)

    /// Waits until a period is there, something is wrong, or the time is over.
    ///
    /// - Returns: False where the time is over.
    func wait(milliseconds: Int32) throws(CardFault) -> Bool

    /// The stamp and the count of one moment. Throws where the card's state is an overrun or a loss.
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
    /// When the card last counted, nanoseconds of CLOCK_MONOTONIC; 0 where it does not say.
    var stamp: Int64
    /// Frames that it has captured until then and that were not read.
    var available: Int
}
