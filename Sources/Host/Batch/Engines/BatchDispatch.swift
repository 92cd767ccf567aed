// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc

/// Hands a batch to an engine: freezes the list, writes the job's files, calls the engine. Main thread.
struct BatchDispatch {
    private let engine: BatchEngine
    private let job: BatchJob
    private let list: [UInt8]
    private let options: EngineOptions

    /// The most tasks where nobody sets the number. Slurm limits an array to 1000 where nobody has raised that.
    private static let usualTasks = 200

    /// - Parameters:
    ///   - arguments: Options of `batch` for every task.
    ///   - variables: Names of the variables that the chain reads.
    ///   - reports: Files that the report goes to, absolute. An empty list means two files beside the job's.
    /// - Throws: ``FrameHostErrors`` where pods would not find a file.
    init(
        _ engine: BatchEngine, _ work: BatchWork, chain: String, needs: EngineNeeds, filesAtOnce: Int,
        options: EngineOptions, arguments: [String], isRetrying: Bool, variables: Set<String>, reports: [String]
    ) throws {
        self.engine = engine
        self.options = options
        list = work.units.frozen(current: work.current)
        var number = SystemRandomNumberGenerator()
        let digits = String(number.next() as UInt32, radix: 16)
        let mark = String(repeating: "0", count: 8 - digits.count) + digits
        let folder = "\(work.out)/\(BatchUnitFolder.hidden)/jobs/\(Self.word(chain))-\(mark)"
        job = BatchJob(
            name: "framehost-\(mark)", folder: folder,
            // A container has a program of its own.
            program: engine == .kubernetes ? "framehost" : PluginRegistry.realPath("/proc/self/exe"),
            current: work.current, variables: Self.values(variables, withOwn: engine != .kubernetes),
            arguments: ["batch", chain, "--list", "\(folder)/list", "--out", work.out] + arguments,
            // Only tasks retry: a report that tried again what has just failed would not end sooner or better.
            taskArguments: isRetrying ? ["--retry"] : [],
            files: work.units.count,  // With parts, several tasks can work at one file.
            tasks: work.parts == nil
                ? min(options.tasks ?? Self.usualTasks, work.units.count)
                : options.tasks ?? min(Self.usualTasks, work.units.count),
            tasksAtOnce: options.tasksAtOnce, cores: options.cores ?? needs.cores * filesAtOnce,
            memoryMiB: options.memory ?? needs.memoryMiB(filesAtOnce: filesAtOnce),
            reports: reports.isEmpty ? ["\(folder)/report.json", "\(folder)/report.csv"] : reports)
        if engine == .kubernetes { try checkVolumes(work, chain: chain) }
    }

    private var volumes: [KubernetesManifest.Volume] { options.volume.compactMap { KubernetesManifest.Volume($0) } }

    /// Letters and digits of the chain's name, for people.
    private static func word(_ chain: String) -> String {
        let name = BatchFiles.withoutEnding(BatchFiles.last(chain)).utf8.prefix(40)
        let isPlain: (UInt8) -> Bool = { byte in
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        }
        return String(decoding: name.map { isPlain($0) ? $0 : UInt8(ascii: "-") }, as: UTF8.self)
    }

    /// The variables of these names that are set, and with `own` also this program's own.
    private static func values(_ names: Set<String>, withOwn own: Bool) -> [(name: String, value: String)] {
        var values: [(name: String, value: String)] = []
        var entry = environ
        while let text = entry.pointee {
            entry += 1
            let parts = String(cString: text).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, isName(parts[0]) else { continue }
            let isOwn = own && parts[0].hasPrefix("FRAMEHOST_")
            if isOwn || names.contains(String(parts[0])) { values.append((String(parts[0]), String(parts[1]))) }
        }
        return values.sorted { $0.name < $1.name }
    }

    /// Whether a shell takes it for a variable's name.
    private static func isName(_ text: Substring) -> Bool {
        let letters = text.utf8.allSatisfy { byte in
            byte == UInt8(ascii: "_") || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
        }
        guard let first = text.utf8.first else { return false }
        return letters && !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first)
    }

    /// Checks that every file lies in a volume: pods see only the volumes.
    private func checkVolumes(_ work: BatchWork, chain: String) throws {
        let volumes = volumes
        func isHeld(_ path: String) -> Bool { volumes.contains { $0.holds(path) } }
        var outside = [("--out \(work.out)", work.out), (chain, chain)]
        // Reports that nobody named lie below --out.
        outside += job.reports.filter { !$0.hasPrefix("\(job.folder)/") }.map { ("--report \($0)", $0) }
        outside = outside.filter { !isHeld($0.1) }
        for unit in 0..<work.units.count where outside.count < 10 {
            guard let input = work.units.input(unit) else { continue }
            let path = input.hasPrefix("/") ? input : "\(work.current)/\(input)"
            if !isHeld(path) { outside.append((input, path)) }
        }
        guard outside.isEmpty else {
            throw FrameHostErrors(
                outside.map {
                    FrameHostError(
                        .invalidConfiguration, place: FaultPlace(argument: $0.0),
                        what: "must be in the folder of a --volume",
                        remedy: "Move it there, or name one more volume: --volume CLAIM:/FOLDER.")
                })
        }
    }

    // MARK: Start

    /// Writes the job's files and starts it. With Ray, another program replaces this one, and the call does not
    /// return.
    ///
    /// - Throws: ``FrameHostError``.
    func start(isQuiet: Bool) throws {
        for folder in [job.folder.split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" }, job.folder] {
            guard mkdir(folder, 0o777) == 0 || errno == EEXIST else {
                throw BatchFiles.fault(folder, "created", errno)
            }
        }
        try write("list", list, mode: 0o644)
        // The file has values of variables, so only its owner can read it.
        try write("job.json", Array(job.json.utf8), mode: 0o600)
        func tell(_ text: String) { if !isQuiet { RunLog.logger.notice("\(text)") } }
        let what =
            "\(BatchDisplay.files(job.files)) as \(job.tasks) \(job.tasks == 1 ? "task" : "tasks"), each with \(job.cores) \(job.cores == 1 ? "core" : "cores") and \(job.memoryMiB) MiB of memory"
        switch engine {
        case .slurm:
            let (array, report) = try submit()
            tell("\(what): Slurm's job \(array), then its job \(report) for the report \(job.reports[0]).")
            Terminal.say("\(array) \(report)")
        case .ray:
            tell("\(what), by Ray; the report will be \(job.reports[0]).")
            throw become("framehost-ray", ["job", "\(job.folder)/job.json"])
        case .kubernetes:
            tell("\(what); the report will be \(job.reports[0]).")
            Terminal.write(
                KubernetesManifest(job: job, image: options.image ?? "framehost:latest", volumes: volumes).text,
                to: .output)
        }
    }

    /// The ids of the array and of the report.
    private func submit() throws -> (String, String) {
        let scripts = SlurmScript(job: job)
        let logs = "\(job.folder)/logs"
        guard mkdir(logs, 0o777) == 0 else { throw BatchFiles.fault(logs, "created", errno) }
        try write("job.sh", Array(scripts.array.utf8), mode: 0o700)
        try write("report.sh", Array(scripts.report.utf8), mode: 0o700)
        let common = ["--parsable", "--chdir=\(job.folder)"]
        let array = try sbatch(common + ["\(job.folder)/job.sh"])
        // Also after failures: that is what a report is for.
        let then = common + ["--dependency=afterany:\(array)", "\(job.folder)/report.sh"]
        do {
            return (array, try sbatch(then))
        } catch {
            let fault = FrameHostError.wrap(error)
            throw FrameHostError(
                fault.code, place: "sbatch",
                what:
                    "the tasks run as Slurm job \(array), but the job for their report was not submitted: sbatch \(fault.what)",
                remedy:
                    "Submit the report's job yourself: sbatch \(then.dropFirst().map(SlurmScript.quoted).joined(separator: " "))"
            )
        }
    }

    /// The id that sbatch prints, without the cluster's name.
    private func sbatch(_ arguments: [String]) throws -> String {
        let (status, output) = try Self.output(of: "sbatch", arguments)
        let id = output.prefix { $0.isNumber }
        guard status != 0 || !id.isEmpty else {
            throw FrameHostError(
                .callFailed, place: "sbatch", what: "did not print the id of the job",
                remedy: "Check with squeue whether the job runs. If it does not, run the same command again.")
        }
        guard status == 0 else {
            throw FrameHostError(
                .callFailed, place: "sbatch", what: "rejected the job (status \(status)); the message above says why",
                remedy:
                    "Correct that and run the same command again. Set options of your cluster as environment variables, such as SBATCH_PARTITION."
            )
        }
        return String(id)
    }

    private func write(_ name: String, _ bytes: [UInt8], mode: mode_t) throws {
        let path = "\(job.folder)/\(name)"
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard file >= 0 else { throw BatchFiles.fault(path, "created", errno) }
        var code = Transfer.write(bytes, to: file)
        if code == 0, fsync(file) != 0 { code = errno }
        close(file)
        guard code == 0 else { throw BatchFiles.fault(path, "written", code) }
    }

    // MARK: Other programs

    private static func notRun(_ program: String, _ code: Int32) -> FrameHostError {
        let isMissing = code == ENOENT
        let remedy =
            !isMissing
            ? "Correct this, then run the same command again."
            : program == "sbatch"
                ? "Run the command on a machine that can submit jobs to Slurm (Debian: package slurm-client)."
                : "Install it from framehost's source tree: pip install ./packaging/ray."
        return FrameHostError(
            .unavailable, place: program,
            what: isMissing ? "is not installed" : "cannot be run: \(String(cString: strerror(code)))", remedy: remedy)
    }

    /// Replaces this program with another. Returns only where that fails, with the fault.
    private func become(_ program: String, _ arguments: [String]) -> FrameHostError {
        // Descriptor 1 is where stages' prints go; the other program wants the real one.
        dup2(StandardOutput.descriptor, STDOUT_FILENO)
        Descriptors.closeOnExec(from: STDERR_FILENO + 1)
        let words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        execvp(program, words)
        return Self.notRun(program, errno)
    }

    /// Runs a program to its end. Its standard error is ours.
    private static func output(of program: String, _ arguments: [String]) throws -> (status: Int32, text: String) {
        let ends = PipeEnds()
        guard ends.isOpen else { throw notRun(program, errno) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, ends.write, 1)
        Descriptors.close(from: STDERR_FILENO + 1, in: &actions)
        let words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var child = pid_t()
        let result = posix_spawnp(&child, program, &actions, nil, words, environ)
        close(ends.write)
        defer { close(ends.read) }
        guard result == 0 else { throw notRun(program, result) }
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = SystemCall.retrying { read(ends.read, &buffer, buffer.count) }
            guard count > 0 else { break }
            // An id is short; the rest is read so that the program can end.
            if text.count < 1 << 16 { text += buffer[..<count] }
        }
        var status: Int32 = 0
        _ = SystemCall.retrying { waitpid(child, &status, 0) }
        let signal = status & 0x7f
        return (signal == 0 ? (status >> 8) & 0xff : 128 + signal, String(decoding: text, as: UTF8.self))
    }
}
