// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Everything that the tasks of a batch are told, whatever engine runs them. Immutable.
struct BatchJob: Sendable {
    /// For people, and a word in file names: letters, digits, hyphens.
    var name: String
    /// The folder of the job's files, absolute.
    var folder: String
    /// The program's file, absolute.
    var program: String
    /// The folder that relative names start at.
    var current: String
    /// Variables that the chain and the program read.
    var variables: [(name: String, value: String)]
    /// Arguments of the program that tasks and the report share.
    var arguments: [String]
    /// Further arguments that only tasks get.
    var taskArguments: [String]
    var files: Int
    var tasks: Int
    /// Tasks that run at once at most; nil for as many as there is room for.
    var tasksAtOnce: Int?
    /// For each task; so is ``memoryMiB``.
    var cores: Int
    var memoryMiB: Int
    /// Files that the report is written to, absolute.
    var reports: [String]

    var reportArguments: [String] { reports.flatMap { ["--report", $0] } }

    /// `job.json`, from which other programs start tasks.
    var json: String {
        JSONNode.object([
            ("format", .number(1)), ("name", .string(name)), ("run", .string(folder)), ("program", .string(program)),
            ("folder", .string(current)),
            ("variables", .object(variables.map { (key: $0.name, value: .string($0.value)) })),
            ("arguments", .array(arguments.map { .string($0) })),
            ("task", .array(taskArguments.map { .string($0) })),
            ("report", .array(reportArguments.map { .string($0) })), ("files", .number(files)),
            ("tasks", .number(tasks)), ("tasksAtOnce", tasksAtOnce.map { .number($0) } ?? .null),
            ("cores", .number(cores)), ("memoryBytes", .number(memoryMiB << 20)),
        ]).text(pretty: true) + "\n"
    }
}
