# A real server with Jenkins' remote API in a testbed. To be sourced after processes.sh.
#
# It is Eclipse Hudson, from which Jenkins was forked: the only one of the two that Maven Central carries. Jobs, builds,
# queue, logs, permissions and crumbs are real; pipelines, folders and API tokens are not in it (see docs/testbed.md).

readonly JENKINS_USER=robot

# find_jenkins: sets HUDSON, a folder with the war and a servlet container to run it in.
find_jenkins() {
    need_command java default-jre-headless
    [[ -d $TOOLS/hudson-$HUDSON_VERSION-jetty-$JETTY_RUNNER_VERSION ]] || need_command mvn maven
    HUDSON=$(tool "hudson-$HUDSON_VERSION-jetty-$JETTY_RUNNER_VERSION" hudson_into) ||
        skip "Eclipse Hudson $HUDSON_VERSION cannot be fetched with Maven"
}

# make_jenkins_home: one user, who may do everything; nobody else may do anything. Changes need a crumb.
make_jenkins_home() {
    local home=$DIR/jenkins/home salt hash
    mkdir -p "$home/users/$JENKINS_USER" "$DIR/jenkins/tmp"
    openssl rand -hex 17 >"$DIR/jenkins/token"
    salt=$(openssl rand -hex 8)
    hash=$(printf '%s{%s}' "$(<"$DIR/jenkins/token")" "$salt" | openssl dgst -sha256 -r | cut -d' ' -f1)
    cat >"$home/config.xml" <<XML
<?xml version='1.0' encoding='UTF-8'?>
<hudson>
  <numExecutors>2</numExecutors>
  <quietPeriod>1</quietPeriod>
  <noUsageStatistics>true</noUsageStatistics>
  <crumbIssuer class="hudson.security.csrf.DefaultCrumbIssuer">
    <excludeClientIPFromCrumb>false</excludeClientIPFromCrumb>
  </crumbIssuer>
</hudson>
XML
    cat >"$home/hudson-security.xml" <<'XML'
<?xml version='1.0' encoding='UTF-8'?>
<hudsonSecurityManager>
  <securityRealm class="hudson.security.HudsonPrivateSecurityRealm">
    <disableSignup>true</disableSignup>
  </securityRealm>
  <authorizationStrategy class="hudson.security.GlobalMatrixAuthorizationStrategy">
    <permission>hudson.model.Hudson.Administer:robot</permission>
  </authorizationStrategy>
  <useSecurity>true</useSecurity>
  <slaveAgentPort>-1</slaveAgentPort>
</hudsonSecurityManager>
XML
    cat >"$home/users/$JENKINS_USER/config.xml" <<XML
<?xml version='1.0' encoding='UTF-8'?>
<user>
  <fullName>$JENKINS_USER</fullName>
  <properties>
    <hudson.security.HudsonPrivateSecurityRealm_-Details>
      <passwordHash>$salt:$hash</passwordHash>
    </hudson.security.HudsonPrivateSecurityRealm_-Details>
  </properties>
</user>
XML
    # The war asks the container for a login service that it never uses.
    : >"$DIR/jenkins/nobody"
    cat >"$DIR/jenkins/context.xml" <<XML
<?xml version="1.0"?>
<!DOCTYPE Configure PUBLIC "-//Jetty//Configure//EN" "https://www.eclipse.org/jetty/configure_9_3.dtd">
<Configure class="org.eclipse.jetty.webapp.WebAppContext">
  <Set name="contextPath">/</Set>
  <Set name="war">$HUDSON/hudson.war</Set>
  <Get name="securityHandler">
    <Set name="loginService">
      <New class="org.eclipse.jetty.security.HashLoginService">
        <Set name="name">default</Set>
        <Set name="config">$DIR/jenkins/nobody</Set>
      </New>
    </Set>
  </Get>
</Configure>
XML
}

start_jenkins() {
    local open=() package
    if ! alive jenkins; then
        rm -rf "${DIR:?}/jenkins"
        mkdir -p "$DIR"/{jenkins,log,pid}
        free_ports 1 >"$DIR/jenkins/port"
        make_jenkins_home
    fi
    # It was written before Java had modules, and looks into classes that are closed today.
    for package in lang lang.ref lang.reflect util util.concurrent text io net; do
        open+=(--add-opens "java.base/java.$package=ALL-UNNAMED")
    done
    # The war's own program refuses every Java but 7 and 8, by the first digits of the version.
    # Nor would it find the processes of a build to stop them: it is told not to look for more than the first.
    start jenkins env HUDSON_HOME="$DIR/jenkins/home" java -Xmx384m -Djava.awt.headless=true \
        -Djava.io.tmpdir="$DIR/jenkins/tmp" -DskipInitSetup=true -Dhudson.udp=0 -Dhudson.DNSMultiCast.disabled=true \
        -Dhudson.util.ProcessTree.disable=true -Dhudson.model.UpdateCenter.never=true \
        -Dorg.eclipse.jetty.util.log.class=org.eclipse.jetty.util.log.StdErrLog \
        "${open[@]}" --add-opens java.desktop/java.awt.font=ALL-UNNAMED \
        -jar "$HUDSON/jetty-runner.jar" --host 127.0.0.1 --port "$(<"$DIR/jenkins/port")" "$DIR/jenkins/context.xml"
    await jenkins 'jenkins answers' jenkins_answers
}

# jenkins_answers: to its user, and to nobody else.
jenkins_answers() {
    local url
    url=http://127.0.0.1:$(<"$DIR/jenkins/port")/api/json
    # The token by a file that nobody else can see, not by an argument that everybody can.
    curl -sf -m 5 -o /dev/null -K <(printf 'user = "%s:%s"\n' "$JENKINS_USER" "$(<"$DIR/jenkins/token")") "$url" &&
        ! curl -sf -m 5 -o /dev/null "$url"
}

jenkins_exports() {
    alive jenkins || return 0
    echo "export QUARTERMASTER_TEST_JENKINS_URL=http://127.0.0.1:$(<"$DIR/jenkins/port")"
    echo "export QUARTERMASTER_TEST_JENKINS_USER=$JENKINS_USER"
    echo "export QUARTERMASTER_TEST_JENKINS_TOKEN=$(<"$DIR/jenkins/token")"
}
