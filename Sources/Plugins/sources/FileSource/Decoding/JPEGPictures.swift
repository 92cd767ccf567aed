// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import FrameSupport
import Stills

/// Decodes the pictures of a Motion JPEG track with libjpeg-turbo, several at once: it takes three quarters of the time that
/// libavcodec takes.
///
/// Packets are handed over and pictures taken on one thread, in the same order. What is no usual JPEG (``JPEGOutline``) is
/// left to libavcodec, with all that follows. `@unchecked Sendable`: a job belongs to the worker that has taken it until it is
/// done; the rest is under the lock, or used by the stage thread alone.
final class JPEGPictures: @unchecked Sendable {
    enum Taken {
        case taken
        /// The packet is no picture.
        case damaged
        /// The packet is for libavcodec.
        case left
    }

    private final class Job {
        var packet = av_packet_alloc()
        var picture = av_frame_alloc()
        /// nil until it is done.
        var outcome: JPEGDecoder.Outcome?

        deinit {
            av_packet_free(&packet)
            av_frame_free(&picture)
        }
    }

    private let context: UnsafeMutablePointer<AVCodecContext>
    /// The container's, which tells a field from a picture; 0 when unknown.
    private let height: Int
    private let workers: Int
    private let decoder: JPEGDecoder
    private let changed = Condition()
    // Under the lock: handed over and not taken yet, in order; how many of them a worker has taken.
    private var jobs: [Job] = []
    private var begun = 0
    private var isEnding = false
    private var threads: [NamedThread] = []
    // For the stage thread only.
    private var isLeft = false
    private var hasTaken = false

    /// [any thread] nil where the track is no Motion JPEG, or says what only libavcodec knows.
    ///
    /// - Parameters:
    ///   - context: Gives pictures their memory. It is open, and outlives this object.
    ///   - workers: How many pictures are decoded at once; with 1 on the thread that hands them over.
    init?(_ context: UnsafeMutablePointer<AVCodecContext>, workers: Int) throws {
        guard context.pointee.codec_id == AV_CODEC_ID_MJPEG, context.pointee.extradata_size == 0 else { return nil }
        self.context = context
        self.workers = workers
        height = Int(max(context.pointee.coded_height, context.pointee.height))
        decoder = try JPEGDecoder()
    }

    // MARK: The stage's side

    /// [stage thread] Hands over a packet.
    func send(_ packet: UnsafeMutablePointer<AVPacket>) throws -> Taken {
        guard !isLeft else { return .left }
        let bytes = UnsafeRawBufferPointer(start: packet.pointee.data, count: Int(max(packet.pointee.size, 0)))
        guard let outline = JPEGOutline(bytes) else {
            // Nothing tells what the first packet is.
            isLeft = !hasTaken
            return isLeft ? .left : .damaged
        }
        // Two fields are two pictures in a packet, of half the height.
        guard outline.isUsual, outline.size.height * 4 >= height * 3, let job = prepare(packet, outline) else {
            isLeft = true
            return .left
        }
        hasTaken = true
        if workers == 1 {
            decode(job, with: decoder)
            jobs.append(job)
        } else {
            if threads.isEmpty { try start() }
            locked { jobs.append(job) }
        }
        return .taken
    }

    /// [stage thread] Takes the next picture. nil when none is held, or more packets can be handed over before one must be
    /// taken.
    ///
    /// - Parameter isLast: Whether no packet follows.
    func receive(into picture: UnsafeMutablePointer<AVFrame>, isLast: Bool) -> PictureDecoder.Step? {
        let job: Job? = locked {
            guard let first = jobs.first, isLast || isLeft || jobs.count >= workers else { return nil }
            while first.outcome == nil { changed.wait() }
            jobs.removeFirst()
            begun = max(begun - 1, 0)
            return first
        }
        guard let job, let decoded = job.picture else { return nil }
        av_frame_unref(picture)
        av_frame_move_ref(picture, decoded)
        switch job.outcome {
        case .decoded: return .picture
        case .unknown: return .damaged
        case .damaged, nil:
            // Grey from there on.
            picture.pointee.flags |= AV_FRAME_FLAG_CORRUPT
            return .picture
        }
    }

    /// [stage thread] Drops what it holds.
    func flush() {
        locked {
            jobs.removeLast(jobs.count - begun)
            while jobs.contains(where: { $0.outcome == nil }) { changed.wait() }
            jobs = []
            begun = 0
        }
    }

    /// [stage thread] Ends the workers.
    func end() {
        flush()
        locked { isEnding = true }
        for thread in threads { thread.join() }
        threads = []
    }

    /// A picture with memory for what the packet has in it; nil where there is none.
    private func prepare(_ packet: UnsafeMutablePointer<AVPacket>, _ outline: JPEGOutline) -> Job? {
        let job = Job()
        guard let copy = job.packet, let picture = job.picture, av_packet_ref(copy, packet) >= 0 else { return nil }
        picture.pointee.width = Int32(outline.size.width)
        picture.pointee.height = Int32(outline.size.height)
        picture.pointee.format = AV_PIX_FMT_YUVJ420P.rawValue
        guard
            av_image_check_size2(
                UInt32(outline.size.width), UInt32(outline.size.height), context.pointee.max_pixels,
                AV_PIX_FMT_YUVJ420P, 0,
                nil) >= 0, context.pointee.get_buffer2(context, picture, 0) >= 0
        else { return nil }
        fh_av_describe_still(picture, packet)
        picture.pointee.sample_aspect_ratio = AVRational(
            num: outline.sampleAspect.numerator, den: outline.sampleAspect.denominator)
        // As JFIF has them.
        picture.pointee.color_range = AVCOL_RANGE_JPEG
        picture.pointee.colorspace = AVCOL_SPC_BT470BG
        picture.pointee.chroma_location = AVCHROMA_LOC_CENTER
        return job
    }

    // MARK: The workers' side

    private func decode(_ job: Job, with decoder: JPEGDecoder) {
        guard let packet = job.packet, let picture = job.picture, let y = picture.pointee.data.0,
            let u = picture.pointee.data.1, let v = picture.pointee.data.2
        else { return job.outcome = .unknown("no memory") }
        let strides = picture.pointee.linesize
        let outcome = decoder.decode(
            UnsafeRawBufferPointer(start: packet.pointee.data, count: Int(packet.pointee.size)),
            size: PictureSize(Int(picture.pointee.width), Int(picture.pointee.height)),
            JPEGDecoder.Target(y, stride: Int(strides.0)), JPEGDecoder.Target(u, stride: Int(strides.1)),
            JPEGDecoder.Target(v, stride: Int(strides.2)))
        locked { job.outcome = outcome }
    }

    private func start() throws {
        for _ in 0..<workers {
            let decoder = try JPEGDecoder()
            do { threads.append(try NamedThread("jpeg") { self.work(decoder) }) } catch {
                throw FrameHostError(
                    .exhausted, what: "a thread for decoding could not be started: \(error)", remedy: NoThread.remedy)
            }
        }
    }

    /// [a worker] Decodes one picture after the other.
    private func work(_ decoder: JPEGDecoder) {
        while true {
            let job: Job? = locked {
                while begun == jobs.count, !isEnding { changed.wait() }
                guard !isEnding else { return nil }
                begun += 1
                return jobs[begun - 1]
            }
            guard let job else { return }
            decode(job, with: decoder)
        }
    }

    private func locked<Result>(_ body: () throws -> Result) rethrows -> Result {
        try changed.locked {
            defer { changed.broadcast() }
            return try body()
        }
    }
}
