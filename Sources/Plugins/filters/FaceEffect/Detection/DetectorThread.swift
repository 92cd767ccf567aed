// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport

/// Runs a detector on a thread of its own, one picture at a time.
///
/// The stage thread fills the slot while it is idle, hands it over, and takes the answer when there is one. A detector
/// that never returns keeps slot and detector alive and nothing else: the stage goes on without it.
/// `@unchecked Sendable`: state changes hands under the lock; slot and answer belong to the detector thread while it is
/// busy and to the stage thread otherwise.
final class DetectorThread: @unchecked Sendable {
    enum State: Equatable {
        /// The slot belongs to the stage thread.
        case idle
        /// The slot belongs to the detector thread.
        case busy
        /// There is an answer to take.
        case answered
        /// The detector threw; ``takeFault()`` gives what it threw.
        case failed
    }

    let detector: any FaceDetecting
    /// What the answer is about: luma for the optical flow, and the detector's own picture.
    let gray: GrayPyramid
    let pixels: UnsafeMutablePointer<UInt8>
    private let pixelBytes: Int
    /// The frame in the slot, by the stage's own count.
    private(set) var frame = 0
    /// Its PTS, nanoseconds.
    private(set) var time: Int64 = 0

    /// Sides of the picture in the slot, and how it is searched.
    private var size = PictureSize(0, 0)
    private var searches: [PictureSize] = []
    private let faces: UnsafeMutableBufferPointer<Detection>
    private let changed = Condition()
    // Below: under the lock.
    private var state = State.idle
    private var count = 0
    private var answeredAt: Int64 = 0
    private var fault: FrameHostError?
    private var isEnding = false
    private var busySince: Int64 = 0

    /// - Parameters:
    ///   - pixelCount: Pixels of the largest picture that the detector is handed.
    ///   - tracking: Sides of the copy that flow works on.
    init(_ detector: any FaceDetecting, pixelCount: Int, tracking: PictureSize) {
        self.detector = detector
        gray = GrayPyramid(width: tracking.width, height: tracking.height)
        pixelBytes = pixelCount * 3
        pixels = .allocate(capacity: pixelBytes)
        pixels.initialize(repeating: 0, count: pixelBytes)
        faces = .allocate(capacity: OpenCV.mostFindings)
        faces.initialize(
            repeating: Detection(box: FaceRect(x: 0, y: 0, width: 0, height: 0), confidence: 0, landmarks: nil))
    }

    deinit {
        faces.deallocate()
        pixels.deallocate()
    }

    /// [control thread] Starts the thread, which holds this object until it ends.
    ///
    /// - Throws: ``FrameHostError`` `.exhausted`.
    func start() throws {
        do { try NamedThread.start("faces") { self.run() } } catch {
            throw FrameHostError(
                .exhausted, what: "the detector's thread could not be started: \(error)", remedy: NoThread.remedy)
        }
    }

    // MARK: The stage thread's side

    var isIdle: Bool { changed.locked { state == .idle } }

    /// [stage thread] Hands over what the stage thread wrote to `gray` and `pixels`. Only while idle.
    ///
    /// - Parameters:
    ///   - size: Sides of the picture in `pixels`.
    ///   - searches: As ``DetectorPicture`` has them.
    func submit(frame: Int, time: Int64, _ size: PictureSize, searches: [PictureSize]) {
        precondition(size.width * size.height * 3 <= pixelBytes, "a picture larger than the slot")
        self.frame = frame
        self.time = time
        self.size = size
        self.searches = searches
        changed.locked {
            state = .busy
            busySince = MonotonicTime.now()
            changed.broadcast()
        }
    }

    /// [stage thread] The state, after waiting for the answer until `deadline` (`CLOCK_MONOTONIC`, nanoseconds) while
    /// it is busy.
    ///
    /// The wait uses real time, not the chain's: a simulated clock does not make a detector faster.
    ///
    /// - Parameter isStopped: Asked every 20 ms; true ends the wait.
    func wait(until deadline: Int64, unless isStopped: () -> Bool) -> State {
        changed.locked {
            while state == .busy {
                let now = MonotonicTime.now()
                guard now < deadline, !isStopped() else { break }
                changed.wait(until: min(deadline, now + 20_000_000))
            }
            return state
        }
    }

    /// [stage thread] After `.answered`: gives the faces to `body`, then makes the slot idle. The luma stays until
    /// the next `submit`.
    ///
    /// - Parameter body: Is told whether there were more faces than the slot has room for.
    func take(_ body: (_ faces: UnsafeMutableBufferPointer<Detection>, _ isFull: Bool) -> Void) {
        let count = changed.locked { self.count }
        body(UnsafeMutableBufferPointer(rebasing: faces[..<min(count, faces.count)]), count > faces.count)
        changed.locked { state = .idle }
    }

    /// [stage thread] When the answer was there (`CLOCK_MONOTONIC`, nanoseconds).
    var lastAnsweredAt: Int64 { changed.locked { answeredAt } }

    /// [stage thread] After `.failed`: gives what the detector threw, and makes the slot idle.
    func takeFault() -> FrameHostError {
        changed.locked {
            state = .idle
            defer { fault = nil }
            return fault ?? FrameHostError(.broken, what: "a detector failed and gave no reason")
        }
    }

    /// [stage thread] For how long the detector has been busy, in nanoseconds; 0 when it is not.
    var busyFor: Int64 { changed.locked { state == .busy ? MonotonicTime.now() - busySince : 0 } }

    /// [stage thread] Asks the thread to end, and waits for that at most 200 ms. A thread that is inside the
    /// detector ends when the detector returns.
    func stop() {
        changed.locked {
            isEnding = true
            changed.broadcast()
        }
        _ = wait(until: MonotonicTime.now() + 200_000_000, unless: { false })
    }

    // MARK: The detector thread's side

    private func run() {
        while nextIsThere() {
            var found = 0
            var thrown: FrameHostError?
            do {
                found = try detector.detect(
                    DetectorPicture(pixels: pixels, width: size.width, height: size.height, searches: searches),
                    into: faces)
            } catch {
                thrown = FrameHostError.wrap(error)
            }
            changed.locked {
                count = max(found, 0)
                answeredAt = MonotonicTime.now()
                fault = thrown
                state = thrown == nil ? .answered : .failed
                changed.broadcast()
            }
        }
    }

    /// Waits for a picture; false at the end.
    private func nextIsThere() -> Bool {
        changed.locked {
            while state != .busy, !isEnding { changed.wait() }
            return !isEnding
        }
    }
}
