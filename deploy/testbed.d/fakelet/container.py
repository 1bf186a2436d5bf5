"""One container: from the image that may be missing to the exit code, and round again if the policy says so."""

import hashlib
import threading

import clock
import environment
import programs
from log import Log

FIRST_BACK_OFF, LAST_BACK_OFF = 1, 60  # seconds; a real kubelet waits 10 s to 5 min
SHORT_LIFE = 0.3  # how long a container runs that is going to fail or to finish by itself


class Container:
    """Its state is what the pod publishes; only its own thread writes it."""

    def __init__(self, pod, spec, kind, restarts=0):
        self.pod, self.name, self.kind = pod, spec["name"], kind
        self.image = spec["image"]
        behind = kind == "main" and pod.latest["spec"].get("initContainers")
        self.state = {"waiting": {"reason": "PodInitializing" if behind else "ContainerCreating"}}
        self.last = {}
        self.restarts = restarts
        self.ready = False
        self.begun = clock.now()
        self.log = self.previous = None
        self.env = {}
        self.sidecar = kind == "init" and spec.get("restartPolicy") == "Always"

    def spec(self):
        """As the API server has it now: an image may be changed while the pod lives."""
        part = {"main": "containers", "init": "initContainers", "ephemeral": "ephemeralContainers"}[self.kind]
        return next(spec for spec in self.pod.latest["spec"][part] if spec["name"] == self.name)

    # --- the life

    def live(self):
        """Returns when the container will not run again."""
        back_off = FIRST_BACK_OFF
        while self.prepare():
            code, reason = self.run()
            ended = {"terminated": self.terminated(code, reason)}
            if self.pod.stopped.is_set() or not self.runs_again(code):
                self.show(ended)
                return
            self.last = ended
            self.previous = self.log
            waiting = f"back-off {back_off}s restarting failed container={self.name} pod={self.pod.title}"
            self.show({"waiting": {"reason": "CrashLoopBackOff", "message": waiting}})
            self.pod.event("Warning", "BackOff", f"Back-off restarting failed container {self.name}", self)
            if self.pod.stopped.wait(back_off):
                return
            back_off = min(back_off * 2, LAST_BACK_OFF)
            self.restarts += 1

    def prepare(self):
        """Waits for image and configuration; False when the pod is stopped first."""
        tries = 0
        while not self.pod.stopped.is_set():
            spec = self.spec()
            self.image = spec["image"]
            if image_is_missing(self.image) or (self.kind == "main" and self.pod.behaviour() == "image-missing"):
                self.show_image_missing(tries)
            else:
                try:
                    environment.check_volumes(self.pod.latest, self.pod.api)
                    self.env = environment.of(spec, self.pod.latest, self.pod.api)
                    return True
                except environment.NotMounted as missing:
                    self.wait_for_volume(str(missing), tries)
                except environment.Missing as missing:
                    self.wait_for_config(str(missing))
            tries += 1
            self.pod.stopped.wait(1)
        return False

    def show_image_missing(self, tries):
        if tries == 0:
            problem = (
                f'rpc error: code = NotFound desc = failed to pull and unpack image "{self.image}": '
                f'failed to resolve reference "{self.image}": {self.image}: not found'
            )
            self.pod.event("Normal", "Pulling", f'Pulling image "{self.image}"', self)
            self.pod.event("Warning", "Failed", f'Failed to pull image "{self.image}": {problem}', self)
            self.show({"waiting": {"reason": "ErrImagePull", "message": problem}})
        elif tries == 1:
            self.pod.event("Normal", "BackOff", f'Back-off pulling image "{self.image}"', self)
            self.show({"waiting": {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{self.image}"'}})

    def wait_for_volume(self, problem, tries):
        """The pod stays in ContainerCreating; only an event tells why."""
        if tries % 10 == 0:
            self.pod.event("Warning", "FailedMount", problem, self)

    def wait_for_config(self, problem):
        state = {"waiting": {"reason": "CreateContainerConfigError", "message": problem}}
        if state != self.state:
            self.pod.event("Warning", "Failed", f"Error: {problem}", self)
            self.show(state)

    def run(self):
        """One life, from start to (exit code, reason)."""
        spec = self.spec()
        self.log, self.begun = Log(), clock.now()
        for reason, message in (
            ("Pulled", f'Container image "{self.image}" already present on machine'),
            ("Created", f"Created container: {self.name}"),
            ("Started", f"Started container {self.name}"),
        ):
            self.pod.event("Normal", reason, message, self)
        self.show({"running": {"startedAt": clock.seconds(self.begun)}})
        try:
            return self.behave(spec)
        finally:
            self.ready = False
            self.log.close()

    def behave(self, spec):
        io = programs.Stdio(
            lambda _, data: self.log.write(data), env=self.env, hostname=self.pod.name, stopped=self.pod.stopped
        )
        if self.kind == "main":
            for line in self.pod.annotation("sandbox/log").splitlines():
                io.out(line)
        early = self.fate(io)
        if early:
            return early
        # Arguments without a command go to the image's own program, of which nothing is known.
        argv = [*spec["command"], *spec.get("args", [])] if spec.get("command") else []
        argv = [environment.expanded(word, self.env) for word in argv]
        program = programs.understood(argv)
        if program:
            self.become_ready()
            code = program(argv[1:], io)
            return code, "Completed" if code == 0 else "Error"
        if self.sidecar or self.kind == "ephemeral" or (self.kind == "main" and self.pod.policy() == "Always"):
            return self.serve(spec, io)
        self.pod.stopped.wait(SHORT_LIFE)
        return 0, "Completed"

    def fate(self, io):
        """How a container ends by itself, if its pod is to; None if it goes on."""
        behaviour = self.pod.behaviour()
        if self.kind != "main" or behaviour not in ("crash", "oom", "complete"):
            return None
        io.out(f"{self.name} starting")
        if behaviour == "complete":
            self.become_ready()
        self.pod.stopped.wait(SHORT_LIFE)
        if behaviour == "crash":
            io.err("fatal: cannot go on")
            return 1, "Error"
        if behaviour == "oom":
            return 137, "OOMKilled"
        io.out("done")
        return 0, "Completed"

    def serve(self, spec, io):
        """Runs until it is stopped, writes a line a second, and follows a change of the pod's annotation."""
        io.out(f"{self.name} starting")
        io.out("listening on :8080")
        delay = spec.get("readinessProbe", {}).get("initialDelaySeconds", 0)
        count = 0
        while True:
            healthy = self.pod.behaviour() != "unready"
            if self.ready and not healthy:
                self.ready = False
                self.pod.publish()
            elif not self.ready and healthy and clock.now() - self.begun >= delay * 10**9:
                self.become_ready()
            if not healthy and count % 10 == 0:
                problem = "Readiness probe failed: HTTP probe failed with statuscode: 503"
                self.pod.event("Warning", "Unhealthy", problem, self)
            if self.pod.stopped.wait(1):
                io.out("stopping")
                return 0, "Completed"
            early = self.fate(io)
            if early:
                return early
            count += 1
            io.out(f"handled request={count} status={200 if healthy else 503}")

    # --- what others see

    def become_ready(self):
        self.ready = True
        self.pod.publish()

    def show(self, state):
        self.state = state
        self.pod.publish()

    def runs_again(self, code):
        if self.kind == "ephemeral":
            return False
        if self.sidecar:
            return True
        policy = self.pod.policy()
        if self.kind == "init":
            return code != 0 and policy != "Never"
        return policy == "Always" or (policy == "OnFailure" and code != 0)

    def terminated(self, code, reason):
        return {
            "exitCode": code,
            "reason": reason,
            "startedAt": clock.seconds(self.begun),
            "finishedAt": clock.seconds(clock.now()),
            "containerID": self.id(),
        }

    def id(self):
        return f"fakelet://{digest(f'{self.pod.uid}/{self.name}/{self.restarts}')}"

    def status(self):
        running = "running" in self.state
        return {
            "name": self.name,
            "image": self.image,
            "imageID": "" if self.log is None else f"{self.image}@sha256:{digest(self.image)}",
            "containerID": "" if self.log is None else self.id(),
            "ready": self.ready and running if self.kind != "init" or self.sidecar else self.exit_code() == 0,
            "started": running,
            "restartCount": self.restarts,
            "state": self.state,
            "lastState": self.last,
        }

    def exit_code(self):
        return self.state.get("terminated", {}).get("exitCode")

    def start(self):
        thread = threading.Thread(target=self.pod.guarded, args=(self.live,), daemon=True)
        thread.start()
        return thread


def image_is_missing(image):
    """`shop/cart:missing` and `shop/cart:does-not-exist-2` have no image behind them."""
    tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
    return tag == "missing" or tag.startswith("does-not-exist")


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()
