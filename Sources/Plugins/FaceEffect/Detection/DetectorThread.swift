// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

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
    /// The frame in the slot, by the stage's own count.
    private(set) var frame = 0
    /// Its PTS, nanoseconds.
    private(set) var time: Int64 = 0

    private let width: Int
    private let height: Int
    private let faces: UnsafeMutableBufferPointer<Detection>
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    // Below: under the lock.
    private var state = State.idle
    private var count = 0
    private var fault: FrameHostError?
    private var isEnding = false
    private var busySince: Int64 = 0

    /// - Parameters:
    ///   - width: Width of the picture that the detector is handed; `height` likewise.
    ///   - tracking: Sides of the copy that flow works on.
    init(_ detector: any FaceDetecting, width: Int, height: Int, tracking: PictureSize) {
        self.detector = detector
        self.width = width
        self.height = height
        gray = GrayPyramid(width: tracking.width, height: tracking.height)
        pixels = .allocate(capacity: width * height * 3)
        pixels.initialize(repeating: 0, count: width * height * 3)
        // Room for half as many weak faces as sure ones, so that no weak one takes the place of a sure one.
        faces = .allocate(capacity: OpenCV.mostFaces * 3 / 2)
        faces.initialize(
            repeating: Detection(box: FaceRect(x: 0, y: 0, width: 0, height: 0), confidence: 0, landmarks: nil))
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(changed, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
        faces.deallocate()
        pixels.deallocate()
    }

    /// [control thread] Starts the thread, which holds this object until it ends.
    ///
    /// - Throws: ``FrameHostError`` `.exhausted`.
    func start() throws {
        let held = Unmanaged.passRetained(self)
        var handle = pthread_t()
        let result = pthread_create(
            &handle, nil,
            { argument in
                let thread = Unmanaged<DetectorThread>.fromOpaque(argument!).takeRetainedValue()
                thread.run()
                return nil
            }, held.toOpaque())
        guard result == 0 else {
            held.release()
            throw FrameHostError(
                .exhausted, what: "the detector's thread could not be started: \(String(cString: strerror(result)))",
                remedy: "Raise the limit of processes (ulimit -u, or TasksMax= of a service), or end other programs.")
        }
        pthread_detach(handle)
    }

    // MARK: The stage thread's side

    var isIdle: Bool { locked { state == .idle } }

    /// [stage thread] Hands over what the stage thread wrote to `gray` and `pixels`. Only while idle.
    func submit(frame: Int, time: Int64) {
        self.frame = frame
        self.time = time
        locked {
            state = .busy
            busySince = Self.now()
            pthread_cond_broadcast(changed)
        }
    }

    /// [stage thread] The state, after waiting for the answer until `deadline` (`CLOCK_MONOTONIC`, nanoseconds) while
    /// it is busy.
    ///
    /// The wait uses real time, not the chain's: a simulated clock does not make a detector faster.
    ///
    /// - Parameter isStopped: Asked every 20 ms; true ends the wait.
    func wait(until deadline: Int64, unless isStopped: () -> Bool) -> State {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while state == .busy {
            let now = Self.now()
            guard now < deadline, !isStopped() else { break }
            let next = min(deadline, now + 20_000_000)
            var time = timespec(tv_sec: Int(next / 1_000_000_000), tv_nsec: Int(next % 1_000_000_000))
            pthread_cond_timedwait(changed, mutex, &time)
        }
        return state
    }

    /// [stage thread] After `.answered`: gives the faces to `body`, then makes the slot idle. The luma stays until
    /// the next `submit`.
    func take(_ body: (UnsafeMutableBufferPointer<Detection>) -> Void) {
        let count = locked { self.count }
        body(UnsafeMutableBufferPointer(rebasing: faces[..<count]))
        locked { state = .idle }
    }

    /// [stage thread] After `.failed`: gives what the detector threw, and makes the slot idle.
    func takeFault() -> FrameHostError {
        locked {
            state = .idle
            defer { fault = nil }
            return fault ?? FrameHostError(.broken, what: "a detector failed and gave no reason")
        }
    }

    /// [stage thread] For how long the detector has been busy, in nanoseconds; 0 when it is not.
    var busyFor: Int64 { locked { state == .busy ? Self.now() - busySince : 0 } }

    /// [stage thread] Asks the thread to end, and waits for that at most 200 ms. A thread that is inside the
    /// detector ends when the detector returns.
    func stop() {
        locked {
            isEnding = true
            pthread_cond_broadcast(changed)
        }
        _ = wait(until: Self.now() + 200_000_000, unless: { false })
    }

    static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }

    // MARK: The detector thread's side

    private func run() {
        Self.nameThread("faces")
        while nextIsThere() {
            var found = 0
            var thrown: FrameHostError?
            do {
                found = try detector.detect(DetectorPicture(pixels: pixels, width: width, height: height), into: faces)
            } catch {
                thrown = FrameHostError.wrap(error)
            }
            locked {
                count = min(max(found, 0), faces.count)
                fault = thrown
                state = thrown == nil ? .answered : .failed
                pthread_cond_broadcast(changed)
            }
        }
    }

    /// Waits for a picture; false at the end.
    private func nextIsThere() -> Bool {
        locked {
            while state != .busy, !isEnding { pthread_cond_wait(changed, mutex) }
            return !isEnding
        }
    }

    private func locked<Result>(_ body: () -> Result) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }

    /// For `top -H` and debuggers, by proc(5), since Swift does not import `pthread_setname_np`.
    private static func nameThread(_ name: String) {
        let file = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { return }
        _ = write(file, name, name.utf8.count)
        close(file)
    }
}
