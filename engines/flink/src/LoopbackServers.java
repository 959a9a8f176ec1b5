import static net.bytebuddy.matcher.ElementMatchers.isConstructor;
import static net.bytebuddy.matcher.ElementMatchers.nameEndsWith;
import static net.bytebuddy.matcher.ElementMatchers.takesArgument;

import java.lang.instrument.Instrumentation;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;

/**
 * A Java agent: Beam's servers, which listen on all network interfaces whatever they are told, listen on loopback only.
 */
public final class LoopbackServers {
  public static void premain(String arguments, Instrumentation instrumentation) {
    new AgentBuilder.Default()
        .type(nameEndsWith(".io.grpc.netty.NettyServerBuilder"))
        .transform(
            (builder, type, loader, module, domain) ->
                builder.visit(
                    Advice.to(Loopback.class).on(isConstructor().and(takesArgument(0, SocketAddress.class)))))
        .installOn(instrumentation);
  }

  /** Runs inside the constructor. */
  public static final class Loopback {
    @Advice.OnMethodEnter
    public static void enter(@Advice.Argument(value = 0, readOnly = false) SocketAddress address) {
      if (address instanceof InetSocketAddress && ((InetSocketAddress) address).getAddress().isAnyLocalAddress()) {
        address = new InetSocketAddress(InetAddress.getLoopbackAddress(), ((InetSocketAddress) address).getPort());
      }
    }
  }
}
